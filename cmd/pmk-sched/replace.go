package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"time"

	"github.com/urfave/cli/v2"
	"go.uber.org/zap"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/pmk-sched/pmk-sched/internal/apply"
	"github.com/pmk-sched/pmk-sched/internal/cluster"
	"github.com/pmk-sched/pmk-sched/internal/configcheck"
	"github.com/pmk-sched/pmk-sched/internal/image"
	"github.com/pmk-sched/pmk-sched/internal/install"
	"github.com/pmk-sched/pmk-sched/internal/problem"
	"github.com/pmk-sched/pmk-sched/internal/replace"
	"github.com/pmk-sched/pmk-sched/internal/staticpod"
)

func replaceCommand(u *ui) *cli.Command {
	return &cli.Command{
		Name:  "replace",
		Usage: "put a scheduler in the place of this node's default one: every pod gets it",
		Description: "Run it as root on a control-plane node. The static pod's manifest is backed up, changed in the scheduler's\n" +
			"container only, and swapped in one rename. If the new scheduler does not become ready, lead, schedule and stay,\n" +
			"the old manifest comes back. On several control-plane nodes: one after the other, see --all-nodes.",
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "image", Usage: "`REFERENCE` of the scheduler's image", DefaultText: "the one that runs"},
			&cli.StringFlag{Name: "config", Usage: "`FILE` with a KubeSchedulerConfiguration of any version", DefaultText: "the one that the scheduler has"},
			&cli.StringFlag{Name: "preset", Usage: "`PRESET` instead of a file: see `pmk-sched profile list`"},
			&cli.BoolFlag{Name: "policy-configmap", Usage: "give predicates, priorities and extenders as a legacy Policy: 1.20 to 1.22 only"},
			&cli.StringFlag{Name: "node", Usage: "`NAME` of this node", DefaultText: "found by its addresses"},
			&cli.BoolFlag{Name: "all-nodes", Usage: "change nothing; print which command is to be run on which node, and which are done"},
			&cli.BoolFlag{Name: "dry-run", Usage: "check everything and print how the manifest would change, but change nothing"},
			&cli.DurationFlag{Name: "timeout", Value: replace.DefaultTimeout, Usage: "bring the old one back after `DURATION` of waiting for the new one"},
			&cli.DurationFlag{Name: "steady", Value: replace.DefaultStableFor, Usage: "trust the new one when it has run for `DURATION`"},
			&cli.BoolFlag{Name: "yes", Aliases: []string{"y"}, Usage: "do not ask"},
			withFlag(), fileFlag(), outputFlag(),
		},
		Action: func(c *cli.Context) error { return runReplace(c, u) },
	}
}

func runReplace(c *cli.Context, u *ui) error {
	o, err := readReplaceOptions(c)
	if err != nil {
		return err
	}
	cfg, err := connect(c, u)
	if err != nil {
		return err
	}
	d, err := newReplaceDeps(c, u, cfg)
	if err != nil {
		return err
	}
	info, err := detect(c, u, cfg, "", "", nil)
	if err != nil {
		return unfinished(d, err)
	}
	if c.Bool("all-nodes") {
		return planNodes(c, u, d, info, o)
	}
	if _, err := replace.FindLayout(info.Layout); err != nil {
		return err
	}
	if err := pluginsOfImage(c, u, info, &o); err != nil {
		return err
	}
	if c.Bool("dry-run") {
		r, err := replace.DryRun(c.Context, d, info, o)
		if err != nil {
			return err
		}
		u.say("nothing was changed: this was a dry run")
		return writeText(staticpod.Diff(r.Old.Data, r.New.Data))(u.out)
	}
	if err := u.confirm(c.Context, c.Bool("yes"), "replace the default scheduler of this node, which serves "+cfg.Host); err != nil {
		return err
	}
	outcome, err := replace.Run(c.Context, d, info, o)
	if err != nil {
		return err
	}
	u.say("the default scheduler of node %s is replaced; prove it with `pmk-sched verify --default`, undo it with `pmk-sched restore`", outcome.Node)
	return u.data(c.String("o"), outcome, func(w io.Writer) error {
		_, err := fmt.Fprintf(w, "node\t%s\nimage\t%s\nbackup\t%s\nleads\t%s\nwithout a scheduler\t%.1f s\n",
			outcome.Node, outcome.Image, outcome.Backup, yesNo(outcome.Leads), outcome.SecondsWithout)
		return err
	})
}

// unfinished adds to an error of asking the cluster that a killed run may be why.
func unfinished(d replace.Deps, err error) error {
	list, e := staticpod.Backups(d.Files)
	if e != nil {
		return err
	}
	if b := staticpod.Current(list); b != nil && b.State == staticpod.Started {
		return problem.WithHint(err, fmt.Sprintf("a replacement stopped at step %q; `pmk-sched restore` brings the old manifest back, and needs no API server for that", b.Step))
	}
	return err
}

func readReplaceOptions(c *cli.Context) (replace.Options, error) {
	f, err := readCustomScheduler(c.String("file"))
	if err != nil {
		return replace.Options{}, err
	}
	reference, err := schedulerImage(c, f)
	if err != nil {
		return replace.Options{}, err
	}
	if c.Duration("steady") <= 0 {
		return replace.Options{}, usagef("", "--steady %s: it has to be above 0", c.Duration("steady"))
	}
	if err := checkTimeout(c); err != nil {
		return replace.Options{}, err
	}
	var same install.Options
	if err := readConfiguration(c, f, &same); err != nil {
		return replace.Options{}, err
	}
	o := replace.Options{
		Image: reference, Preset: same.Preset, Configuration: same.Configuration, ConfigurationName: same.ConfigurationName,
		PolicyConfigMap: c.Bool("policy-configmap") || f.Spec.Configuration.PolicyConfigMap && !c.IsSet("policy-configmap"),
		Node:            c.String("node"), Names: ownNames(), Timeout: c.Duration("timeout"), StableFor: c.Duration("steady"),
	}
	if o.Extenders, err = f.extendersOfNode(); err != nil || c.Bool("all-nodes") {
		return o, err
	}
	return o, o.Validate()
}

// pluginsOfImage adds what is known of the plugins in the image, as for deploy.
func pluginsOfImage(c *cli.Context, u *ui, info *cluster.Info, o *replace.Options) error {
	same := install.Options{Image: o.Image}
	if err := addPlugins(c, u, &same, info.Release); err != nil {
		return err
	}
	o.Plugins, o.Rules, o.PluginRules = same.Plugins, same.Rules, same.PluginRules
	return nil
}

// planNodes prints which command is to be run where.
func planNodes(c *cli.Context, u *ui, d replace.Deps, info *cluster.Info, o replace.Options) error {
	words := []string{"pmk-sched", "replace", "--yes"}
	for _, flag := range []string{"image", "config", "preset", "file"} {
		if value := c.String(flag); value != "" {
			words = append(words, "--"+flag, value)
		}
	}
	if c.Bool("policy-configmap") {
		words = append(words, "--policy-configmap")
	}
	plan, err := replace.PlanNodes(c.Context, d, info, o.Image, strings.Join(words, " "))
	if err != nil {
		return err
	}
	u.say("run each command on its node, one after the other; go on only when it says that it is done. Nodes of one minor may differ meanwhile.")
	return u.data(c.String("o"), plan, func(w io.Writer) error {
		_, err := fmt.Fprintln(w, "NODE\tDONE\tIMAGE\tCOMMAND")
		for _, n := range plan {
			if err == nil {
				_, err = fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", n.Node, yesNo(n.Done), cmp.Or(n.Image, "-"), n.Command)
			}
		}
		return err
	})
}

func yesNo(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}

// replaceRequestTimeout bounds one request: while a scheduler is replaced a silent
// API server has to be noticed soon.
const replaceRequestTimeout = 10 * time.Second

// newReplaceDeps gives replace, restore and status what they need from outside.
func newReplaceDeps(c *cli.Context, u *ui, cfg *rest.Config) (replace.Deps, error) {
	root, err := nodeRoot(c)
	if err != nil {
		return replace.Deps{}, err
	}
	short := rest.CopyConfig(cfg)
	short.Timeout = replaceRequestTimeout
	kube, err := kubernetes.NewForConfig(short)
	if err != nil {
		return replace.Deps{}, err
	}
	client, err := apply.New(cfg, apply.Options{Log: u.log})
	if err != nil {
		return replace.Deps{}, err
	}
	cache, err := cacheDir(c)
	if err != nil {
		return replace.Deps{}, err
	}
	return replace.Deps{
		Files:       staticpod.Files{Resolve: func(path string) (string, error) { return cluster.OnHost(root, path) }},
		Kube:        kube,
		Applier:     client,
		EnsureImage: func(ctx context.Context, reference string) error { return ensureImage(ctx, u, reference) },
		Binary: func(ctx context.Context, reference, dir string) (configcheck.Binary, error) {
			return findBinary(ctx, cache, reference, dir)
		},
		Verify: func(ctx context.Context, r *replace.Plan, standby bool) error {
			if standby {
				u.warn("another node's scheduler leads, so that no pod shows this one schedule; `pmk-sched verify --default` shows it once all are replaced")
				return nil
			}
			v, err := verifyDefault(ctx, u, cfg, defaultRequest{want: r.ID, image: r.Image, timeout: time.Minute, quiet: true})
			if err != nil {
				return err
			}
			u.log.Info("the new scheduler bound a pod", zap.String("pod", v.Pod), zap.Float64("seconds", v.Seconds))
			return nil
		},
		Holder: holder(), Now: time.Now, Warn: func(text string) { u.warn(text) }, Note: func(text string) { u.say("note: %s", text) },
		OnStep: u.step, Log: u.log,
	}, nil
}

// ensureImage sees to it that this node's containerd has an image: the kubelet may
// need minutes to pull one, and all that time there would be no scheduler.
func ensureImage(ctx context.Context, u *ui, reference string) error {
	if !hasContainerd() {
		u.warn("this node has no containerd at its usual place: whether its runtime has the image is not known")
		return nil
	}
	there, err := image.InContainerd(ctx, reference, "")
	if err != nil || there {
		return err
	}
	if strings.HasPrefix(reference, "localhost/") {
		return problem.Invalidf("load it here: `pmk-sched build … --load containerd`, or `ctr -n k8s.io images import FILE.tar`", "image %s is not on this node, and no registry has it", reference)
	}
	keychain := imageSources(reference)[0].Keychain
	if err := during(u, "pull "+reference, func() error { return image.PullContainerd(ctx, reference, "", keychain) }); err != nil {
		return problem.Invalidf("load it here: `pmk-sched build … --load containerd`, or `ctr -n k8s.io images import FILE.tar`", "image %s is not on this node and cannot be pulled: %s", reference, err)
	}
	return nil
}

func hasContainerd() bool {
	_, err := os.Stat(image.DefaultContainerdSocket)
	return err == nil
}

// ownNames are the names and addresses by which a cluster may know this machine.
func ownNames() []string {
	var names []string
	if host, err := os.Hostname(); err == nil {
		names = append(names, host, strings.ToLower(host))
	}
	addresses, _ := net.InterfaceAddrs()
	for _, address := range addresses {
		if network, ok := address.(*net.IPNet); ok && !network.IP.IsLoopback() {
			names = append(names, network.IP.String())
		}
	}
	return names
}
