package pack

import (
	"context"

	pmksched "github.com/pmk-sched/pmk-sched"
	"github.com/pmk-sched/pmk-sched/internal/artifact/build"
	"github.com/pmk-sched/pmk-sched/internal/artifact/programs"
	"github.com/pmk-sched/pmk-sched/internal/cluster/session"
	"github.com/pmk-sched/pmk-sched/profiles"
	"github.com/pmk-sched/pmk-sched/versions"
)

// Scheduler is a kube-scheduler to run on this machine, with its configuration.
type Scheduler struct {
	// Name of the scheduler. If it is empty, it is the default scheduler.
	Name string
	// Branch is the release, or [BranchAuto].
	Branch string
	// Plugins and Imports are compiled in.
	Plugins []Plugin
	Imports []string
	// Preset or Configuration is the configuration of the scheduler. ConfigurationName is the file
	// of Configuration.
	Preset            string
	Configuration     []byte
	ConfigurationName string
	Lossy             bool
	// Source names the scheduler in comparisons: the file that describes it, or default.
	Source string
}

// Compiled is a kube-scheduler for this machine.
type Compiled struct {
	programs.Program
	// Plugins are the compiled-in ones with their places in the configuration.
	Plugins []profiles.Plugin
}

// Compile compiles the kube-scheduler of a release with plugins for this machine, or finds it in
// the build cache: it is the binary that an image of the same plugins has. Without plugins it is
// found by [Finder].
func Compile(
	ctx context.Context, s *session.Session, release versions.Release, list []Plugin, imports []string,
) (*Compiled, error) {
	if len(list)+len(imports) == 0 {
		request := programs.Request{Release: release, Names: []string{build.KubeScheduler}}
		found, err := Finder(s).Find(ctx, request)
		return &Compiled{Program: found[build.KubeScheduler]}, err
	}
	built, err := build.Run(ctx, build.Options{
		Environment: Environment(s), Release: release, Plugins: Sources(list), Imports: imports,
		Sources: pmksched.Sources,
	})
	if err != nil {
		return nil, err
	}
	for _, warning := range built.Info.Warnings {
		s.Warn(warning)
	}
	c := &Compiled{Program: programs.Compiled(built)[build.KubeScheduler]}
	if len(list) > 0 {
		_, c.Plugins, err = readSources(ctx, s, release, list)
	}
	return c, err
}
