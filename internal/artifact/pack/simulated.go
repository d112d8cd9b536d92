package pack

import (
	"context"

	pmksched "github.com/pmk-sched/pmk-sched"
	"github.com/pmk-sched/pmk-sched/api/v1alpha1"
	"github.com/pmk-sched/pmk-sched/internal/artifact/build"
	"github.com/pmk-sched/pmk-sched/internal/artifact/programs"
	"github.com/pmk-sched/pmk-sched/internal/cluster/session"
	"github.com/pmk-sched/pmk-sched/profiles"
	"github.com/pmk-sched/pmk-sched/versions"
)

// Scheduler is a kube-scheduler to run on this machine, with its configuration.
type Scheduler struct {
	// Name of the scheduler. Defaults to the default scheduler.
	Name string
	// Branch is the release, or [BranchAuto].
	Branch string
	// Plugins and Imports are compiled in. From is the Kubernetes source, and Go the Go version, as in
	// [Request].
	Plugins  []Plugin
	Imports  []string
	From, Go string
	// Configuration is the configuration that a deployment renders. Release, kubeconfig and enabled
	// plugins are decided where the scheduler runs.
	Configuration profiles.Request
	// Args are flags of kube-scheduler, --name=value each.
	Args []string
	// Deployed are the extenders that a deployment runs in the cluster. They have no address yet.
	Deployed []profiles.Extender
	// Request is the whole request, and Unused its fields that no simulation uses.
	Request *v1alpha1.CustomScheduler
	Unused  []string
	// Source names the scheduler in comparisons: the file that describes it, or default.
	Source string
	// Unconfirmed is set while the user has not confirmed code that comes out of a cluster.
	Unconfirmed *Unconfirmed `json:"-"`
	// Recorded is set for such code, and stays set when the user has confirmed it: it runs in a
	// sandbox only.
	Recorded bool
}

// Compiled is a kube-scheduler for this machine.
type Compiled struct {
	programs.Program
	// Plugins are the compiled-in ones with their places in the configuration.
	Plugins []profiles.Plugin
}

// Compile compiles a release's kube-scheduler with r's plugins for this machine, or finds it in the
// build cache: it is the binary in an image with the same plugins. Without plugins it is found by
// [Finder].
func Compile(ctx context.Context, s *session.Session, release versions.Release, r Scheduler) (*Compiled, error) {
	if err := r.Unconfirmed.Check(); err != nil {
		return nil, err
	}
	if len(r.Plugins)+len(r.Imports) == 0 && r.From == "" && r.Go == "" {
		request := programs.Request{Release: release, Names: []string{build.KubeScheduler}}
		found, err := Finder(s).Find(ctx, request)
		return &Compiled{Program: found[build.KubeScheduler]}, err
	}
	return compile(ctx, s, r, build.Options{Release: release}, build.KubeScheduler)
}

// CompileTest compiles a program that runs the tests in file, which belongs to the package of a
// release's kube-scheduler with r's plugins. Like upstream's own tests it has no version: with one,
// an API server in it removes the APIs that its release no longer serves, without their storage
// (RemoveDeletedKinds in k8s.io/apiserver/pkg/server/deleted_kinds.go), and tests that look for
// leaks fail.
func CompileTest(
	ctx context.Context, s *session.Session, release versions.Release, r Scheduler, name string, file []byte,
) (*Compiled, error) {
	if err := r.Unconfirmed.Check(); err != nil {
		return nil, err
	}
	test := build.Program{Name: name, Package: build.SchedulerPackage, Test: true, Unstamped: true}
	return compile(ctx, s, r, build.Options{
		Release: release, Programs: []build.Program{test},
		Files: map[string][]byte{build.SchedulerDir + "/added_test.go": file},
	}, name)
}

// compile compiles a program with r's plugins.
func compile(ctx context.Context, s *session.Session, r Scheduler, o build.Options, name string) (*Compiled, error) {
	o.Environment, o.Source, o.Go, o.Sources = Environment(s), r.From, r.Go, pmksched.Sources
	o.Plugins, o.Imports = Sources(r.Plugins), r.Imports
	built, err := build.Run(ctx, o)
	if err != nil {
		return nil, err
	}
	for _, warning := range built.Info.Warnings {
		s.Warn(warning)
	}
	c := &Compiled{Program: programs.Compiled(built)[name]}
	if len(r.Plugins) > 0 {
		_, c.Plugins, err = readSources(ctx, s, o.Release, r.Plugins)
	}
	return c, err
}
