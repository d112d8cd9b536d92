package main

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/pmk-sched/pmk-sched/cmd/internal/command"
	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/cluster/apply"
	"github.com/pmk-sched/pmk-sched/internal/deploy"
	"github.com/pmk-sched/pmk-sched/internal/deploy/extenders"
	"github.com/pmk-sched/pmk-sched/internal/deploy/lifecycle"
	"github.com/pmk-sched/pmk-sched/internal/deploy/manifest"
	"github.com/pmk-sched/pmk-sched/internal/deploy/spec"
	"github.com/pmk-sched/pmk-sched/internal/replace"
)

func extenderCommand(u *ui) *cli.Command {
	return &cli.Command{
		Name: "extender", Usage: "deploy scheduler extenders and wire them into schedulers",
		Subcommands: []*cli.Command{
			extenderRenderCommand(u), extenderDeployCommand(u), extenderRestartCommand(u), extenderUninstallCommand(u),
		},
	}
}

// extenderFlags describe one extender, and which schedulers call it. Verbs, weight, timeout,
// managed resources, port and placement are settings in the file only.
func extenderFlags(more ...cli.Flag) []cli.Flag {
	return append(command.Shared("of an extender",
		nameFlag("extender"),
		&cli.StringFlag{Name: "image", Usage: "`REFERENCE` of the extender's image",
			DefaultText: "the image of build extender"},
		&cli.StringFlag{Name: "file", Aliases: []string{"f"},
			Usage: "take the extender of --name from spec.extenders of `FILE`; - is standard input"},
		&cli.StringSliceFlag{Name: "policy", Usage: "serve the policy `NAME[=WEIGHT]`, see `pmk-sched plugin list`"},
		&cli.StringFlag{Name: "config",
			Usage: "`FILE` with policies and their arguments, in the form of pmk-extender --config"},
		&cli.StringFlag{Name: "prometheus", Usage: "`URL` of the Prometheus server for the policy loadaware"},
		&cli.StringFlag{Name: "ignorable", Usage: "`true|false`: schedule pods while the extender is unavailable (required)"},
		&cli.BoolFlag{Name: "sidecar", Usage: "run it in the scheduler's pod"},
		&cli.IntFlag{Name: "replicas", Usage: "`NUMBER` of replicas", DefaultText: "2"},
		&cli.StringSliceFlag{Name: "for", Usage: "wire it into the scheduler `[NAMESPACE/]NAME`"},
	), more...)
}

func readExtender(c *cli.Context, u *ui) (extenders.Options, []extenders.SchedulerRef, error) {
	sp, err := spec.Read(nameFlags(c, u))
	if err != nil {
		return extenders.Options{}, nil, err
	}
	o, err := sp.Extender(spec.ExtenderFlags{
		Image: c.String("image"), Policies: c.StringSlice("policy"), Config: c.String("config"),
		Prometheus: c.String("prometheus"),
		Ignorable:  c.String("ignorable"), Sidecar: c.Bool("sidecar"), Replicas: given(c, "replicas", c.Int),
		Set: c.LocalFlagNames(),
	})
	return o, callers(c.StringSlice("for"), u.Namespace), err
}

func callers(names []string, namespace string) []extenders.SchedulerRef {
	var refs []extenders.SchedulerRef
	for _, name := range names {
		ref := extenders.SchedulerRef{Namespace: cmp.Or(namespace, spec.DefaultNamespace), Name: name}
		if before, after, ok := strings.Cut(name, "/"); ok {
			ref = extenders.SchedulerRef{Namespace: before, Name: after}
		}
		refs = append(refs, ref)
	}
	return refs
}

func extenderRenderCommand(u *ui) *cli.Command {
	return &cli.Command{
		Name: "render", Usage: "print the objects that extender deploy would apply",
		Description: "Prints the objects of the extender, and of each scheduler of --for with the extender wired in. With " +
			"--branch it works without a cluster. Keys are redacted unless --show-secrets is given.",
		UsageText: command.Examples(
			"pmk-sched extender render --name my-extender --policy blockall --ignorable=true --branch v1.24.3",
			"pmk-sched extender render -f extenders.yaml --name my-extender --branch v1.24.3 --to-file out.yaml",
		),
		Flags: extenderFlags(
			&cli.StringFlag{Name: "branch", Usage: "`RELEASE` of the API server, to work without a cluster",
				DefaultText: "the API server's"},
			toFileFlag(),
			&cli.BoolFlag{Name: "show-secrets", Usage: "print keys too, so that the output can be applied"},
			command.OutputFlag("to-file", "yaml", "json", "table")),
		Action: func(c *cli.Context) error {
			o, refs, err := readExtender(c, u)
			if err != nil {
				return err
			}
			plans, err := lifecycle.PlanExtender(c.Context, u.Session, o, refs, c.String("branch"))
			if err != nil {
				return err
			}
			var text []byte
			for i, plan := range plans {
				objects, err := deploy.Render(plan, c.Bool("show-secrets"))
				if err != nil {
					return err
				}
				if i > 0 {
					text = append(text, "---\n"...)
				}
				text = append(text, objects...)
			}
			return u.objects(c.String("output"), c.String("to-file"), text)
		},
	}
}

func extenderDeployCommand(u *ui) *cli.Command {
	return &cli.Command{
		Name: "deploy", Usage: "deploy an extender and wire it into schedulers",
		Description: "Creates a Deployment, Service, NetworkPolicy, PodDisruptionBudget, certificates and the permissions " +
			"of the policies; or, with --sidecar, a container in the pod of each scheduler of --for. --for adds the extender " +
			"to the configuration of a scheduler that pmk-sched deployed, --default to the configuration of the default " +
			"scheduler of this node (as root on a control-plane node, like replace). A test pod proves that the schedulers " +
			"call the extender. A failure undoes everything.",
		UsageText: command.Examples(
			"pmk-sched extender deploy --name my-extender --policy blockall --ignorable=true --for my-scheduler",
			"pmk-sched extender deploy -f extenders.yaml --name my-extender --default --dry-run",
		),
		Flags: extenderFlags(
			&cli.BoolFlag{Name: "default", Usage: "wire it into the default scheduler of this node"},
			&cli.StringFlag{Name: "node", Usage: "`NAME` of this node, for --default", DefaultText: "found by its addresses"},
			&cli.BoolFlag{Name: "dry-run", Usage: "run all checks and print the changes without making them"},
			&cli.BoolFlag{Name: "no-rollback", Usage: "do not undo a failed deployment"},
			timeoutFlag(defaultTimeout, "the pods"), extenderStableForFlag(),
			yesFlag(), command.OutputFlag("")),
		Action: func(c *cli.Context) error {
			o, refs, err := readExtender(c, u)
			if err != nil {
				return err
			}
			extender, err := replace.NewExtender(c.Context, u.Session, o, refs)
			if err != nil {
				return err
			}
			if c.Bool("default") {
				if err := extender.CallFromNode(c.Context, c.String("node"), c.Duration("stable-for")); err != nil {
					return err
				}
			}
			if c.Bool("dry-run") {
				changes, node, err := extender.DryRun(c.Context)
				if err != nil {
					return err
				}
				u.Say("dry run: nothing was changed")
				preview := extenderPreview{Outcome: deploy.Outcome{Changes: changes}}
				text := changes.String()
				if node != nil {
					preview.Default = newPreview(node)
					text += preview.Default.Diff
				}
				return u.Data(c.String("output"), preview, text)
			}
			if c.Bool("default") {
				if err := u.Confirm(c.Context, c.Bool("yes"),
					"wire extender "+o.Name+" into the default scheduler of this node"); err != nil {
					return err
				}
			}
			outcome, err := extender.Deploy(c.Context, runOptions(c))
			if err != nil {
				return err
			}
			u.Say("extender %s is deployed at %s; remove it with `pmk-sched extender uninstall --name %s`", outcome.Extender,
				outcome.Address, outcome.Extender)
			if len(outcome.Schedulers) == 0 {
				u.Say("no scheduler calls it yet: wire it into one with --for NAME, or into the default scheduler with --default")
			}
			return u.Data(c.String("output"), outcome, extenderTable(outcome))
		},
	}
}

// extenderPreview is the output from extender deploy --dry-run.
type extenderPreview struct {
	deploy.Outcome
	Default *replacePreview `json:"defaultScheduler,omitempty"`
}

func extenderTable(o *extenders.Outcome) string {
	return fmt.Sprintf("%sextender %s at %s, called by: %s\n",
		o.Changes, o.Extender, o.Address, strings.Join(o.Schedulers, ", "))
}

func extenderRestartCommand(u *ui) *cli.Command {
	return &cli.Command{
		Name: "restart", Usage: "roll out new pods of an extender, with another image if one is given",
		Description: "A new pod is ready before an old one ends. A rollout that does not become ready is undone.",
		UsageText: command.Examples("pmk-sched extender restart --name my-extender",
			"pmk-sched extender restart --name my-extender --image registry.example.com/pmk-extender:v2"),
		Flags: []cli.Flag{
			nameFlag("extender"),
			&cli.StringFlag{Name: "image", Usage: "`REFERENCE` of the new image", DefaultText: "the current image"},
			&cli.BoolFlag{Name: "no-rollback", Usage: "do not undo a failed rollout"},
			timeoutFlag(defaultTimeout, "the pods"), extenderStableForFlag(), command.OutputFlag(""),
		},
		Action: func(c *cli.Context) error {
			name, image := c.String("name"), c.String("image")
			if err := checkExtenderName(name); err != nil {
				return err
			}
			if strings.ContainsAny(image, " \t\n") {
				return problem.Invalidf("", "invalid --image %q: must not contain spaces", image)
			}
			outcome, err := lifecycle.RestartExtender(c.Context, u.Session, extenders.RestartOptions{
				Name: name, Namespace: cmp.Or(u.Namespace, spec.DefaultNamespace), Image: image, RunOptions: runOptions(c),
			})
			if err != nil {
				return err
			}
			u.Say("extender %s is restarted and ready", outcome.Extender)
			return u.Data(c.String("output"), outcome, outcome.Changes.String())
		},
	}
}

func extenderUninstallCommand(u *ui) *cli.Command {
	return &cli.Command{
		Name: "uninstall", Usage: "remove an extender from the schedulers that call it, and delete it",
		Description: "Removes the extender from the configuration of each scheduler. If the default schedulers of nodes " +
			"call it, run the command as root on each of these nodes: the last run deletes the objects.",
		UsageText: command.Examples("pmk-sched extender uninstall --name my-extender",
			"pmk-sched extender uninstall --name my-extender --yes -o json"),
		Flags: []cli.Flag{
			nameFlag("extender"),
			&cli.StringFlag{Name: "node", Usage: "`NAME` of this node, if its default scheduler calls the extender",
				DefaultText: "found by its addresses"},
			timeoutFlag(defaultTimeout, "the pods"), extenderStableForFlag(), yesFlag(), command.OutputFlag(""),
		},
		Action: func(c *cli.Context) error {
			name := c.String("name")
			if err := checkExtenderName(name); err != nil {
				return err
			}
			if _, err := u.Session.Connect(); err != nil {
				return err
			}
			if err := u.Confirm(c.Context, c.Bool("yes"), "remove extender "+name); err != nil {
				return err
			}
			changes, err := replace.UninstallExtender(c.Context, u.Session, extenders.UninstallOptions{
				Name: name, Namespace: cmp.Or(u.Namespace, spec.DefaultNamespace), RunOptions: runOptions(c),
			}, c.String("node"))
			if err != nil {
				return err
			}
			if len(changes) == 0 {
				changes = apply.ChangeSet{} // a list in JSON too
				u.Say("extender %s was not found", name)
			}
			return u.Data(c.String("output"), changes, changes.String())
		},
	}
}

func checkExtenderName(name string) error {
	if name == "" {
		return problem.Invalidf("", "--name is required")
	}
	return manifest.ValidateName(name)
}
