package simulate

import (
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"slices"

	"github.com/pmk-sched/pmk-sched/internal/foresight/kubescheduler"
	"github.com/pmk-sched/pmk-sched/versions"
)

// kubeconfigFile is the name of the scheduler's kubeconfig.
const kubeconfigFile = "kubeconfig"

// startScheduler starts the scheduler.
func (r *Run) startScheduler(ctx context.Context) error {
	kubeconfig, err := r.kubeconfig(ctx)
	if err != nil {
		return err
	}
	r.Scheduler, err = r.Options.Scheduler.Start(ctx, r.Session, r.Options.Dir, kubeconfig, r.configure(ctx))
	return err
}

// configure returns the changes to the scheduler's configuration for a run.
func (r *Run) configure(ctx context.Context) func(*kubescheduler.Configuration) error {
	return func(c *kubescheduler.Configuration) error {
		gates, _ := deviceArgs(r.Options.Scheduler.Release, slices.Sorted(maps.Keys(r.devices.gates)))
		if err := c.SetFlags(gates, c.Args, listByName(r.Options.Scheduler.Release)); err != nil {
			return err
		}
		if r.Options.Scheduler.Repeatable {
			if err := c.Set("parallelism", 1); err != nil {
				return err
			}
		}
		return r.Options.Observer.Configure(ctx, r, c)
	}
}

// Complete returns a configuration as the scheduler completes it with its release's defaults.
func (r *Run) Complete(ctx context.Context, c *kubescheduler.Configuration) ([]byte, error) {
	return r.Options.Scheduler.Complete(ctx, r.Options.Dir, filepath.Join(r.Options.Dir, kubeconfigFile), c)
}

// kubeconfig writes the scheduler's kubeconfig: with all permissions, or, for a sandbox, with those
// of a kube-scheduler.
func (r *Run) kubeconfig(ctx context.Context) (file string, err error) {
	file = filepath.Join(r.Options.Dir, kubeconfigFile)
	if r.Options.Scheduler.Request.Recorded {
		if err := r.permit(ctx); err != nil {
			return "", err
		}
		err = r.server.WriteSchedulerKubeconfig(file)
	} else {
		err = r.server.WriteKubeconfig(file, "")
	}
	if err != nil {
		return "", fmt.Errorf("write kubeconfig of the scheduler: %w", err)
	}
	return file, nil
}

// listByName are the flags with which a scheduler knows the nodes in name order. From 1.35 on it
// would have another order at each start, since client-go lists objects by watching them
// (WatchListClient, and watchList in tools/cache/reflector.go), and take the first of equally good
// nodes.
func listByName(release versions.Release) []string {
	const gate = "WatchListClient"
	if g := release.Gates()[gate]; g.Exists && g.Default && !g.Locked {
		return []string{"--feature-gates=" + gate + "=false"}
	}
	return nil
}

// OrdersTies reports whether a scheduler that examines one node at a time gives equally good nodes
// to the same pods in each simulation.
func OrdersTies(release versions.Release) bool {
	return release.Rules().OrderedTies && len(listByName(release)) > 0
}
