//go:build linux

package lab

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"go.uber.org/zap"
	"k8s.io/client-go/kubernetes"

	"github.com/pmk-sched/pmk-sched/internal/artifact/kubeadm"
	"github.com/pmk-sched/pmk-sched/internal/base/plural"
	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/versions"
)

// bringUp is the state of Up and Upgrade.
type bringUp struct {
	o        Options
	log      *zap.Logger
	lab      *Lab
	layout   layout
	rules    versions.Rules
	machine  machine
	programs map[string]string // by name, on the machine
	images   kubeadm.Images    // of a cluster that kubeadm makes
	archives []archive         // of images
	secrets  secrets
	client   kubernetes.Interface
	made     bool // this run created the lab's directory
	unlock   func()
}

// step is one step of Up. logs are the daemons whose logs help if it fails.
type step struct {
	name string
	do   func(ctx context.Context) error
	logs []string
}

func (u *bringUp) steps() []step {
	steps := append(u.programSteps(),
		step{name: "make images", do: u.makeImages},
		step{name: "make namespaces and network", do: u.makeNamespaces, logs: []string{holder}},
	)
	switch {
	case u.lab.byKubeadm():
		steps = append(steps, u.kubeadmSteps()...)
	case u.lab.hosted():
		steps = append(steps, u.hostedSteps()...)
	default:
		steps = append(steps,
			step{name: "write the nodes' files", do: u.writeFiles},
			step{name: "start etcd and containerd", do: u.startRuntime, logs: []string{"etcd", "containerd"}},
			step{name: "load images", do: u.loadImagesEverywhere, logs: []string{"containerd"}},
			step{name: "start the API server", do: u.startAPIServers, logs: []string{"kubelet", "etcd", "containerd"}},
		)
		if u.o.Masters > 1 {
			steps = append(steps, step{name: "start " + keeper, do: u.startKeepers, logs: []string{keeper}})
		}
		for _, n := range u.lab.masters() {
			register := func(ctx context.Context) error { return u.register(ctx, n.hostName) }
			steps = append(steps, step{name: "register node " + n.hostName, do: register, logs: []string{"kubelet"}})
		}
		steps = append(steps,
			step{name: "wait for the control plane", do: u.waitControlPlane, logs: []string{"kubelet", "kube-proxy"}})
	}
	if u.o.Nodes > 0 {
		name := "add " + plural.Count(u.o.Nodes, "worker")
		steps = append(steps, step{name: name, do: u.addWorkers, logs: []string{"kwok"}})
	}
	return steps
}

// programSteps are the steps that change nothing but the cache.
func (u *bringUp) programSteps() []step {
	return []step{
		{name: "check this machine", do: u.checkMachine},
		{name: "get Kubernetes " + u.o.Release.String(), do: u.getPrograms},
	}
}

// GetPrograms gets the programs of a lab into the cache, as Up does before it creates the lab.
func GetPrograms(ctx context.Context, o Options) error {
	u, err := newBringUp(o)
	if err != nil {
		return err
	}
	return u.run(ctx, u.programSteps())
}

// Up creates a lab and returns when its control plane and nodes are ready. If it fails, or ctx
// ends, it removes everything again unless o.Keep is set. The error is ErrExists if the lab exists,
// and a *MissingError if the machine lacks something. If a process does not start, the error ends
// with the last lines of its log.
func Up(ctx context.Context, o Options) (*Lab, error) {
	u, err := newBringUp(o)
	if err != nil {
		return nil, err
	}
	defer func() { u.unlock() }()
	if err := u.run(ctx, u.steps()); err != nil {
		return nil, err
	}
	u.lab.state.Ready = true
	if err := u.lab.save(); err != nil {
		return nil, u.abandon(ctx, step{name: "record that the lab is up"}, err)
	}
	return u.lab, nil
}

// run does the steps in order. If one fails, the lab is removed.
func (u *bringUp) run(ctx context.Context, steps []step) error {
	for _, s := range steps {
		if err := u.do(ctx, s); err != nil {
			return u.abandon(ctx, s, err)
		}
	}
	return nil
}

func (u *bringUp) do(ctx context.Context, s step) error {
	u.log.Debug("step", zap.String("name", s.name))
	return u.o.OnStep.Do(s.name, func() error { return s.do(ctx) })
}

// abandon removes the lab and returns err with the logs.
func (u *bringUp) abandon(ctx context.Context, s step, err error) error {
	err = fmt.Errorf("%s: %w", s.name, err)
	if !u.made {
		return err
	}
	// A user who cancels does not need the logs; a timeout does.
	if !errors.Is(ctx.Err(), context.Canceled) {
		err = u.withLogs(s, err)
	}
	if u.o.Keep {
		return problem.WithHint(err,
			"the lab is kept in "+u.lab.dir+"; remove it with: pmk-lab down --name "+u.lab.Name())
	}
	// Clean up even if ctx has ended.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
	defer cancel()
	if rest := remove(ctx, u.lab.dir, u.log); rest != nil {
		rest = fmt.Errorf("take down lab %s again: %w", u.lab.Name(), rest)
		return problem.WithHint(errors.Join(err, rest), "remove the rest with: pmk-lab down --name "+u.lab.Name())
	}
	return err
}

// claim creates the lab's directory. The first process to create it owns the name.
func (u *bringUp) claim() error {
	if err := os.MkdirAll(u.o.StateDir, 0o755); err != nil {
		return fmt.Errorf("create the lab's directory: %w", err)
	}
	err := os.Mkdir(u.lab.dir, 0o755)
	if errors.Is(err, fs.ErrExist) {
		return existsError(u.lab.Name(), u.lab.dir)
	}
	if err != nil {
		return fmt.Errorf("create the lab's directory: %w", err)
	}
	u.made = true
	for _, n := range u.lab.Nodes() {
		if err := n.create(); err != nil {
			return err
		}
	}
	return u.lab.network().create()
}
