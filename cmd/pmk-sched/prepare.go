package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/urfave/cli/v2"
	"k8s.io/client-go/rest"

	"github.com/pmk-sched/pmk-sched/internal/apply"
	"github.com/pmk-sched/pmk-sched/internal/build"
	"github.com/pmk-sched/pmk-sched/internal/cluster"
	"github.com/pmk-sched/pmk-sched/internal/configcheck"
	"github.com/pmk-sched/pmk-sched/internal/extenders"
	"github.com/pmk-sched/pmk-sched/internal/image"
	"github.com/pmk-sched/pmk-sched/internal/install"
	"github.com/pmk-sched/pmk-sched/internal/preflight"
	"github.com/pmk-sched/pmk-sched/internal/problem"
	"github.com/pmk-sched/pmk-sched/versions"
)

// noNode is the value of --node-root that keeps from reading files of the node.
const noNode = "none"

// nodeRoot is the folder under which a control-plane node's files are: the one
// given, else / if it is one, else none.
func nodeRoot(c *cli.Context) (string, error) {
	switch root := global(c, flagNodeRoot); root {
	case noNode:
		return "", nil
	case "":
		if _, ok := nodeKubeconfig("/"); ok {
			return "/", nil
		}
		return "", nil
	default:
		if info, err := os.Stat(root); err != nil || !info.IsDir() {
			return "", usagef("", "--node-root %s: it is not a folder", root)
		}
		return root, nil
	}
}

// nodeKubeconfig returns the path, as the node sees it, of the scheduler's
// kubeconfig below root. One that may not be looked at counts.
func nodeKubeconfig(root string) (string, bool) {
	for _, layout := range cluster.Layouts() {
		_, err := os.Stat(filepath.Join(root, layout.Kubeconfig))
		if err == nil || errors.Is(err, fs.ErrPermission) {
			return layout.Kubeconfig, true
		}
	}
	return "", false
}

// detect looks at the cluster and the node, for the scheduler of that name.
func detect(c *cli.Context, u *ui, cfg *rest.Config, name, namespace string, sourceGo func(context.Context, versions.Release) (string, error)) (*cluster.Info, error) {
	root, err := nodeRoot(c)
	if err != nil {
		return nil, err
	}
	var info *cluster.Info
	err = during(u, "look at the cluster", func() (err error) {
		info, err = cluster.Detect(c.Context, cfg, cluster.Options{
			NodeRoot: root, Name: name, SchedulerNamespace: namespace, SourceGo: sourceGo, Log: u.log,
		})
		return err
	})
	return info, err
}

// releaseToBuild is the release that was named, else the one of the cluster.
func releaseToBuild(c *cli.Context, u *ui, branch string) (versions.Release, error) {
	if branch != branchAuto {
		return resolveBranch(c, u, branch)
	}
	cfg, err := connect(c, u)
	if err != nil {
		return versions.Release{}, fmt.Errorf("ask the cluster for its release (--branch names one without asking): %w", err)
	}
	info, err := detect(c, u, cfg, "", "", nil)
	if err != nil {
		return versions.Release{}, fmt.Errorf("ask the cluster for its release (--branch names one without asking): %w", err)
	}
	return info.Release, nil
}

// resolveBranch returns the release of a --branch, and prints which one it chose.
func resolveBranch(c *cli.Context, u *ui, branch string) (versions.Release, error) {
	cache, err := cacheDir(c)
	if err != nil {
		return versions.Release{}, err
	}
	release, note, err := build.ResolveBranch(c.Context, branch, build.SourceOptions{CacheDir: cache, Env: os.Environ(), Log: u.log, OnStep: u.step})
	if note != "" {
		u.say("note: %s", note)
	}
	return release, err
}

// planFromFlags reads the flags that describe a scheduler, and makes its plan for
// the cluster that the returned configuration reaches.
func planFromFlags(c *cli.Context, u *ui) (*rest.Config, *install.Plan, error) {
	o, err := readOptions(c)
	if err != nil {
		return nil, nil, err
	}
	cfg, err := connect(c, u)
	if err != nil {
		return nil, nil, err
	}
	plan, err := makePlan(c, u, cfg, o)
	return cfg, plan, err
}

// prepareScheduler inspects the cluster and the node, and reads the extenders of the file.
func prepareScheduler(c *cli.Context, u *ui, cfg *rest.Config, o install.Options) (extenders.SchedulerDeployment, error) {
	s := extenders.SchedulerDeployment{Options: o}
	info, err := detect(c, u, cfg, o.Name, o.Namespace, nil)
	if err != nil {
		return s, err
	}
	s.Info = info
	u.warn(info.Warnings...)
	// Unless the user asks for it, a key goes only to the cluster that it belongs to.
	sameCluster := !info.Credentials.OtherCluster || o.Credentials != install.Auto
	if path := info.Credentials.Kubeconfig; path != "" && o.WantsNodeCredentials() && sameCluster {
		if s.Credentials, err = cluster.ReadNodeCredentials(info.Node.Root, path); err != nil {
			return s, problem.WithHint(err, "--credentials serviceaccount needs no file of the node")
		}
	}
	if s.Credentials == nil || !o.WantsNodeCredentials() {
		s.Options.APIServer = apiServerForPods(c.Context, cfg)
	}
	err = completeScheduler(c, u, &s)
	return s, err
}

// completeScheduler adds the plugins of the image and the extenders of the file.
func completeScheduler(c *cli.Context, u *ui, s *extenders.SchedulerDeployment) error {
	release, err := install.Release(s.Info, s.Options)
	if err != nil {
		return err
	}
	if s.Extenders, err = extendersOf(c); err != nil {
		return err
	}
	return addPlugins(c, u, &s.Options, release)
}

// makePlan inspects the cluster and the node and plans the scheduler with the extenders of the file.
func makePlan(c *cli.Context, u *ui, cfg *rest.Config, o install.Options) (*install.Plan, error) {
	s, err := prepareScheduler(c, u, cfg, o)
	if err != nil {
		return nil, err
	}
	deps, err := newDeps(c, u, cfg)
	if err != nil {
		return nil, err
	}
	return planScheduler(c, u, deps, s)
}

// makeOfflinePlan plans without a cluster. Credentials come from the node's files if there are any.
func makeOfflinePlan(c *cli.Context, u *ui, o install.Options) (*install.Plan, error) {
	root, err := nodeRoot(c)
	if err != nil {
		return nil, err
	}
	s := extenders.SchedulerDeployment{Options: o}
	if path, ok := nodeKubeconfig(root); ok && root != "" && o.WantsNodeCredentials() {
		if s.Credentials, err = cluster.ReadNodeCredentials(root, path); err != nil {
			return nil, err
		}
	}
	if err := completeScheduler(c, u, &s); err != nil {
		return nil, err
	}
	return planScheduler(c, u, install.Deps{}, s)
}

func planScheduler(c *cli.Context, u *ui, deps install.Deps, s extenders.SchedulerDeployment) (*install.Plan, error) {
	plan, err := extenders.PlanScheduler(c.Context, deps, s)
	if err == nil {
		showNotes(u, plan)
	}
	return plan, err
}

// newDeps gives install what it needs from outside.
func newDeps(c *cli.Context, u *ui, cfg *rest.Config) (install.Deps, error) {
	client, err := apply.New(cfg, apply.Options{Log: u.log})
	if err != nil {
		return install.Deps{}, err
	}
	cache, err := cacheDir(c)
	if err != nil {
		return install.Deps{}, err
	}
	return install.Deps{
		Applier: client, Ledger: client, Locker: client, Finder: client, Holder: holder(),
		Preflight: func(ctx context.Context, plan *install.Plan) error {
			_, err := runPreflight(ctx, u, cfg, plan)
			return err
		},
		Binary: func(ctx context.Context, plan *install.Plan, dir string) (configcheck.Binary, error) {
			return findBinary(ctx, cache, plan.Scheduler.Image, dir)
		},
		Warn: func(text string) { u.warn(text) }, Note: func(text string) { u.say("note: %s", text) }, OnStep: u.step, Log: u.log,
	}, nil
}

// holder says who runs this, for the lock that keeps two runs apart.
func holder() string {
	who, where := "somebody", "some machine"
	if me, err := user.Current(); err == nil {
		who = me.Username
	}
	if host, err := os.Hostname(); err == nil {
		where = host
	}
	return fmt.Sprintf("%s@%s (process %d)", who, where, os.Getpid())
}

// runPreflight asks the cluster whether the plan can be carried out.
func runPreflight(ctx context.Context, u *ui, cfg *rest.Config, plan *install.Plan) ([]preflight.Outcome, error) {
	checks, err := preflight.Checks(cfg, preflight.Options{
		Name: plan.Name, Namespace: plan.Namespace, Image: plan.Scheduler.Image, Objects: plan.Objects,
		Port: plan.Scheduler.Port, TakenPorts: plan.TakenPorts, Log: u.log,
	})
	if err != nil {
		return nil, err
	}
	return preflight.RunAll(ctx, checks, func(o preflight.Outcome) {
		if o.Status == preflight.Warned {
			u.warn(o.Description + ": " + o.Detail)
		}
	})
}

// extractTimeout bounds the search for a binary in an image: without one
// deployment goes on.
const extractTimeout = time.Minute

// findBinary looks for the kube-scheduler of an image: among what was built on
// this machine, in this machine's containerd, in the registry.
func findBinary(ctx context.Context, cache, reference, dir string) (configcheck.Binary, error) {
	if runtime.GOOS != "linux" {
		return configcheck.Binary{}, fmt.Errorf("%w: images hold Linux programs and this is %s", configcheck.ErrNoBinary, runtime.GOOS)
	}
	known, err := image.CanonicalName(reference)
	if err != nil {
		return configcheck.Binary{}, err
	}
	if result, found, err := build.FindByImage(cache, known); err == nil && found {
		if binary, ok := result.Binary(build.KubeScheduler, build.Host()); ok {
			return configcheck.Binary{Path: binary.Path, Origin: "the build's cache"}, nil
		}
	}
	ctx, cancel := context.WithTimeout(ctx, extractTimeout)
	defer cancel()
	var failed []string
	for _, source := range imageSources(reference) {
		to := filepath.Join(dir, build.KubeScheduler)
		err := image.ExtractFile(ctx, source, "", "", to)
		if err == nil {
			return configcheck.Binary{Path: to, Origin: "image " + reference}, nil
		}
		if ctx.Err() != nil {
			return configcheck.Binary{}, fmt.Errorf("%w: read %s: %w", configcheck.ErrNoBinary, reference, ctx.Err())
		}
		failed = append(failed, err.Error())
	}
	return configcheck.Binary{}, fmt.Errorf("%w: %s", configcheck.ErrNoBinary, strings.Join(failed, "; "))
}

// imageSources are the places where an image can be read, the nearest first.
func imageSources(reference string) []image.Source {
	sources := []image.Source{{Reference: reference, Keychain: authn.DefaultKeychain}}
	if _, err := os.Stat(image.DefaultContainerdSocket); err == nil {
		sources = append([]image.Source{{Reference: reference, Containerd: image.DefaultContainerdSocket}}, sources...)
	}
	return sources
}
