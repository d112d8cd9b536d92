//go:build linux

package lab

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"go.uber.org/zap"
	"k8s.io/client-go/kubernetes"

	"github.com/pmk-sched/pmk-sched/internal/lab/kubeadm"
	"github.com/pmk-sched/pmk-sched/internal/problem"
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
	node     nodeConfig
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
	steps := []step{
		{name: "check this machine", do: u.checkMachine},
		{name: "get Kubernetes " + u.o.Release.String(), do: u.getPrograms},
		{name: "make images", do: u.makeImages},
		{name: "make namespaces and network", do: u.makeNamespaces, logs: []string{holder}},
	}
	if u.lab.state.Kubeadm {
		steps = append(steps, u.kubeadmSteps()...)
	} else {
		steps = append(steps,
			step{name: "write the node's files", do: u.writeFiles},
			step{name: "start etcd and containerd", do: u.startRuntime, logs: []string{"etcd", "containerd"}},
			step{name: "load images", do: u.loadImages, logs: []string{"containerd"}},
			step{name: "start the API server", do: u.startAPIServer, logs: []string{"kubelet", "etcd", "containerd"}},
			step{name: "register node " + u.o.Name, do: u.registerNode, logs: []string{"kubelet"}},
			step{name: "wait for the control plane", do: u.waitControlPlane, logs: []string{"kubelet", "kube-proxy"}},
		)
	}
	if u.o.Nodes > 0 {
		steps = append(steps, step{name: fmt.Sprintf("add %d workers", u.o.Nodes), do: u.addWorkers, logs: []string{"kwok"}})
	}
	return steps
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
	for _, s := range u.steps() {
		done := u.begin(s.name)
		err := s.do(ctx)
		done(err)
		if err != nil {
			return nil, u.abandon(ctx, s, err)
		}
	}
	u.lab.state.Ready = true
	if err := u.lab.save(); err != nil {
		return nil, u.abandon(ctx, step{name: "record that the lab is up"}, err)
	}
	return u.lab, nil
}

func newBringUp(o Options) (*bringUp, error) {
	if o.Name == "" {
		o.Name = DefaultName
	}
	if err := ValidateName(o.Name); err != nil {
		return nil, err
	}
	if o.Log == nil {
		o.Log = zap.NewNop()
	}
	l, err := findLayout(o.Layout)
	if err != nil {
		return nil, err
	}
	rules, warnings, err := versions.Select(o.Release)
	if err != nil {
		return nil, err
	}
	for _, w := range warnings {
		o.Log.Warn(w)
	}
	if o.Nodes < 0 || o.Nodes > 5000 {
		return nil, problem.Invalidf("use a number from 0 to 5000", "a lab cannot have %d workers", o.Nodes)
	}
	if o.Masters == 0 {
		o.Masters = 1
	}
	if err := checkNodes(l.name, o.Masters, o.Workers); err != nil {
		return nil, err
	}
	keys, err := newSecrets()
	if err != nil {
		return nil, err
	}
	if err := checkFolders(o.Name, o.StateDir, o.CacheDir); err != nil {
		return nil, err
	}
	if o.Programs == nil {
		o.Programs = Compiled{CacheDir: o.CacheDir, Env: o.Env, Log: o.Log, OnStep: o.OnStep}
	}
	lab := &Lab{dir: filepath.Join(o.StateDir, o.Name), state: state{
		Name: o.Name, Release: o.Release, Layout: l.name, Masters: o.Masters, Workers: o.Workers, Nodes: o.Nodes, Kubeadm: madeByKubeadm(o), Created: time.Now().UTC().Truncate(time.Second),
	}}
	if _, err := os.Stat(lab.dir); !errors.Is(err, fs.ErrNotExist) {
		return nil, exists(o.Name, lab.dir)
	}
	return &bringUp{o: o, log: o.Log, layout: l, rules: rules, lab: lab, secrets: keys, programs: map[string]string{}, unlock: func() {}}, nil
}

// madeByKubeadm reports whether kubeadm makes the cluster, instead of the lab itself.
func madeByKubeadm(o Options) bool {
	return o.Layout == LayoutKubeadm && (o.Masters > 1 || o.Workers > 0)
}

// checkNodes refuses numbers of nodes that a layout cannot have.
func checkNodes(layout string, masters, workers int) error {
	if layout != LayoutKubeadm {
		if masters != 1 || workers != 0 {
			return problem.Invalidf("use --layout kubeadm", "layout %s has one control-plane node, and no workers with a kubelet", layout)
		}
		return nil
	}
	if masters < 1 || masters > maxMasters {
		return problem.Invalidf(fmt.Sprintf("use a number from 1 to %d", maxMasters), "a lab cannot have %d control-plane nodes", masters)
	}
	if workers < 0 || workers > maxWorkers {
		return problem.Invalidf(fmt.Sprintf("use a number from 0 to %d", maxWorkers), "a lab cannot have %d workers with a kubelet", workers)
	}
	return nil
}

// checkFolders refuses directories that the lab's own mounts hide, and a state directory that would
// make the paths of sockets too long for the kernel.
func checkFolders(name, stateDir, cacheDir string) error {
	for _, dir := range []string{stateDir, cacheDir} {
		if !filepath.IsAbs(dir) || strings.ContainsAny(dir, " \t\n:,\\'") {
			return problem.Invalidf("", "directory %q: a lab needs an absolute path without blanks, quotes, commas, colons and backslashes", dir)
		}
		for _, hidden := range []string{"/run", "/sys", "/proc", "/dev"} {
			if dir == hidden || strings.HasPrefix(dir, hidden+"/") {
				return problem.Invalidf("", "directory %s: a lab cannot use a directory in %s", dir, hidden)
			}
		}
	}
	const longestSocket = 107 // sockaddr_un.sun_path, with its end
	if socket := filepath.Join(stateDir, name, "cp1", "root") + containerdSocket; len(socket) > longestSocket {
		return problem.Invalidf("choose a shorter directory or name",
			"directory %s: the path of containerd's socket, %s, would be longer than the %d characters that the kernel allows", stateDir, socket, longestSocket)
	}
	return nil
}

func exists(name, dir string) error {
	return problem.Invalidf("use it, take it down with: pmk-sched lab down --name "+name+", or choose another --name", "%w: %s (%s)", ErrExists, name, dir)
}

func (u *bringUp) begin(name string) func(error) {
	u.log.Debug("step", zap.String("name", name))
	if u.o.OnStep != nil {
		if done := u.o.OnStep(name); done != nil {
			return done
		}
	}
	return func(error) {}
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
		return problem.WithHint(err, "the lab is kept in "+u.lab.dir+"; remove it with: pmk-sched lab down --name "+u.lab.Name())
	}
	// Clean up even if ctx has ended.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
	defer cancel()
	if rest := remove(ctx, u.lab.dir, u.log); rest != nil {
		return problem.WithHint(errors.Join(err, fmt.Errorf("take down lab %s again: %w", u.lab.Name(), rest)), "remove the rest with: pmk-sched lab down --name "+u.lab.Name())
	}
	return err
}

func (u *bringUp) findPrograms(context.Context) (err error) {
	u.machine, err = lookAtMachine(u.o.Release, u.lab.balanced(), thisMachine(u.o.Env))
	return err
}

func (u *bringUp) checkMachine(ctx context.Context) error {
	if err := u.findPrograms(ctx); err != nil {
		return err
	}
	return checkInotify("/proc", u.o.Masters*inotifyOfMaster+u.o.Workers*inotifyOfWorker)
}

func (u *bringUp) getPrograms(ctx context.Context) error {
	names := kubernetesPrograms()
	if u.lab.state.Kubeadm {
		names = append(names, "kubeadm")
	}
	paths, err := u.o.Programs.Kubernetes(ctx, u.o.Release, names)
	if err != nil {
		return err
	}
	for name, path := range paths {
		u.programs[name] = path
	}
	if err := u.getEtcd(ctx); err != nil {
		return err
	}
	if u.lab.state.Kubeadm {
		if u.programs[runner], err = u.o.Programs.Module(ctx, runnerModule, runnerVersion, runnerPackage, runner); err != nil {
			return err
		}
	}
	if u.o.Nodes > 0 {
		if u.programs["kwok"], err = u.o.Programs.Module(ctx, kwokModule, kwokVersion, kwokPackage, "kwok"); err != nil {
			return err
		}
	}
	return nil
}

// getEtcd gets the etcd that kubeadm of the release names, or else one that serves the release.
func (u *bringUp) getEtcd(ctx context.Context) (err error) {
	version := etcdVersion
	if u.lab.state.Kubeadm {
		if u.images, err = u.listImages(ctx); err != nil {
			return err
		}
		version = u.images.EtcdVersion()
		// etcd has a module that builds from 3.5 on. Debian's etcd is 3.4.
		switch {
		case !strings.HasPrefix(version, "v3.4."):
			u.machine.etcd = ""
		case u.machine.etcd == "":
			return problem.Errorf("apt-get install -y --no-install-recommends etcd-server", "kubeadm of %s runs etcd 3.4, which this machine does not have", u.o.Release)
		}
	}
	if u.programs["etcd"] = u.machine.etcd; u.machine.etcd == "" {
		u.programs["etcd"], err = u.o.Programs.Module(ctx, etcdModule, version, etcdModule, "etcd")
	}
	return err
}

func (u *bringUp) makeImages(ctx context.Context) (err error) {
	dir, busybox := filepath.Join(u.o.CacheDir, "lab-images"), u.machine.busybox
	u.archives, err = archives(ctx, dir, busybox, func(pause string) []labImage {
		if u.lab.state.Kubeadm {
			return kubeadmImages(u.images, u.programs, pause, busybox)
		}
		return labImages(nodeConfig{release: u.o.Release}, u.programs, pause, busybox)
	})
	return err
}

// claim creates the lab's directory. The first process to create it owns the name.
func (u *bringUp) claim() error {
	if err := os.MkdirAll(u.o.StateDir, 0o755); err != nil {
		return fmt.Errorf("create the lab's directory: %w", err)
	}
	err := os.Mkdir(u.lab.dir, 0o755)
	if errors.Is(err, fs.ErrExist) {
		return exists(u.lab.Name(), u.lab.dir)
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

// describeNode sets the data for the files of a control-plane node.
func (u *bringUp) describeNode() error {
	n := u.lab.first()
	keys, err := newCredentials(n.name, n.hostName, n.address, time.Now())
	if err != nil {
		return err
	}
	u.node = n.config(u.rules)
	u.node.keys = keys
	return nil
}
