//go:build linux

package lab

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/pmk-sched/pmk-sched/internal/clock"
)

// patience is the maximum duration of each wait. A machine that is compiling at the same time is
// slow.
const patience = 8 * time.Minute

// makeNamespaces claims the lab's name, creates its cgroups and namespaces, and links them to the
// machine.
func (u *bringUp) makeNamespaces(ctx context.Context) error {
	if err := u.claim(); err != nil {
		return err
	}
	lock, err := lockDir(ctx, u.lab.dir, 0)
	if err != nil {
		return fmt.Errorf("lock the lab: %w", err)
	}
	u.unlock = lock
	if u.group, err = newGroup(u.lab.dir); err != nil {
		return err
	}
	unlock, err := lockNetworks(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	used, err := machineNetworks()
	if err != nil {
		return err
	}
	subnet, err := chooseSubnet(subnetPools(), used)
	if err != nil {
		return err
	}
	if err := u.describeNode(subnet); err != nil {
		return err
	}
	if err := u.lab.writeScripts(u.lab.scriptData(u.node, u.group, []string{u.o.StateDir, u.o.CacheDir})); err != nil {
		return err
	}
	if err := u.group.create(); err != nil {
		return err
	}
	hold := []string{"/bin/sh", filepath.Join(u.lab.dir, "hold"), strconv.Itoa(os.Getpid())}
	if err := u.lab.start(holder, hold, u.machine.path); err != nil {
		return err
	}
	if err := u.wait(ctx, "namespaces", holder, func(context.Context) error {
		_, err := os.Stat(u.lab.pidFile(holder))
		return err
	}); err != nil {
		return err
	}
	u.group.delegate()
	return setUpLink(linkName(u.lab.dir), subnet)
}

// writeFiles writes the files of the control-plane node.
func (u *bringUp) writeFiles(context.Context) error {
	files, err := u.layout.allFiles(u.node)
	if err != nil {
		return err
	}
	for _, f := range files {
		path := filepath.Join(u.lab.Root(), f.path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return fmt.Errorf("write %s: %w", f.path, err)
		}
		if err := os.WriteFile(path, f.data, f.mode); err != nil {
			return fmt.Errorf("write %s: %w", f.path, err)
		}
	}
	outside, err := kubeconfig(access{
		server:  "https://" + net.JoinHostPort(u.node.address.String(), strconv.Itoa(u.layout.port)),
		cluster: u.lab.Name(), user: "kubernetes-admin", contexts: []contextName{{name: "lab-" + u.lab.Name()}},
		ca: u.node.keys.ca.Cert, pair: u.node.keys.admin,
	})
	if err != nil {
		return err
	}
	if err := os.WriteFile(u.lab.Kubeconfig(), outside, 0o600); err != nil {
		return fmt.Errorf("write kubeconfig: %w", err)
	}
	for name, from := range u.programs {
		if err := linkOrCopy(from, filepath.Join(u.lab.BinDir(), name)); err != nil {
			return fmt.Errorf("install %s: %w", name, err)
		}
	}
	if path := u.layout.kubeletBinary; path != "" {
		if err := linkOrCopy(u.programs["kubelet"], filepath.Join(u.lab.Root(), path)); err != nil {
			return fmt.Errorf("install kubelet: %w", err)
		}
	}
	for _, name := range pluginsOfNetwork() {
		if err := linkOrCopy(filepath.Join(u.machine.cniDir, name), filepath.Join(u.lab.Root(), "opt/cni/bin", name)); err != nil {
			return fmt.Errorf("install CNI plugin %s: %w", name, err)
		}
	}
	return nil
}

func (u *bringUp) binary(name string) string { return filepath.Join(u.lab.BinDir(), name) }

func (u *bringUp) startRuntime(ctx context.Context) error {
	if err := u.lab.startDaemon(etcdDaemon(u.binary("etcd")), u.machine.path); err != nil {
		return err
	}
	if err := u.lab.startDaemon(containerdDaemon(), u.machine.path); err != nil {
		return err
	}
	return u.lab.waitContainerd(ctx, u.machine.path, u.wait)
}

// waitContainerd waits until containerd answers.
func (l *Lab) waitContainerd(ctx context.Context, path string, wait waiter) error {
	return wait(ctx, "containerd", "containerd", func(ctx context.Context) error {
		return l.run(ctx, path, "ctr", "--address", containerdSocket, "--connect-timeout", "2s", "version")
	})
}

func (u *bringUp) loadImages(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(2)
	for _, archive := range u.archives {
		group.Go(func() error { return u.lab.LoadImage(ctx, archive) })
	}
	return group.Wait()
}

// LoadImage imports a Docker or OCI archive into the node's containerd, for the kubelet.
func (l *Lab) LoadImage(ctx context.Context, archive string) error {
	err := l.run(ctx, systemPath(""), "ctr", "--address", containerdSocket, "--namespace", "k8s.io", "images", "import", archive)
	if err != nil {
		return fmt.Errorf("load image %s: %w", archive, err)
	}
	return nil
}

// run runs a program on the node. If the program fails, the error contains its output.
func (l *Lab) run(ctx context.Context, path string, argv ...string) error {
	cmd := exec.CommandContext(ctx, filepath.Join(l.dir, "enter"), argv...)
	cmd.Dir = "/"
	cmd.Env = daemonEnv(path)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		return fmt.Errorf("%s: %w: %s", argv[0], err, lastLines(out.String(), 5))
	}
	return nil
}

// startAPIServer starts the kubelet, which starts the static pods, and waits for the API server.
func (u *bringUp) startAPIServer(ctx context.Context) error {
	if err := u.lab.startDaemon(kubeletDaemon(u.layout, u.node, u.binary("kubelet")), u.machine.path); err != nil {
		return err
	}
	client, err := u.lab.client()
	if err != nil {
		return err
	}
	u.client = client
	return u.wait(ctx, "the API server", "kubelet", func(ctx context.Context) error {
		return client.Discovery().RESTClient().Get().AbsPath("/readyz").Do(ctx).Error()
	})
}

// restConfig reads the administrator's kubeconfig. There is no proxy between the machine and the
// node.
func (l *Lab) restConfig() (*rest.Config, error) {
	cfg, err := clientcmd.BuildConfigFromFlags("", l.Kubeconfig())
	if err != nil {
		return nil, fmt.Errorf("read the kubeconfig of lab %s: %w", l.Name(), err)
	}
	cfg.Proxy = direct
	cfg.QPS = -1 // no limit
	cfg.Timeout = 30 * time.Second
	return cfg, nil
}

func (l *Lab) client() (kubernetes.Interface, error) {
	cfg, err := l.restConfig()
	if err != nil {
		return nil, err
	}
	client, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		return nil, fmt.Errorf("connect to lab %s: %w", l.Name(), err)
	}
	return client, nil
}

// waiter waits until check returns no error, or the named daemon has exited.
type waiter func(ctx context.Context, what, daemon string, check func(context.Context) error) error

func (u *bringUp) wait(ctx context.Context, what, daemon string, check func(context.Context) error) error {
	return u.lab.waitFor(ctx, u.group, what, daemon, check)
}

func (l *Lab) waitFor(ctx context.Context, g group, what, daemon string, check func(context.Context) error) error {
	for begin := time.Now(); ; {
		limited, cancel := context.WithTimeout(ctx, 20*time.Second)
		err := check(limited)
		cancel()
		if err == nil {
			return nil
		}
		if ctx.Err() != nil {
			return fmt.Errorf("wait for %s: %w", what, ctx.Err())
		}
		if time.Since(begin) > patience {
			return fmt.Errorf("wait for %s: timed out after %s: %w", what, patience, err)
		}
		if gone, lookErr := l.ended(daemon, g, begin); gone || lookErr != nil {
			return fmt.Errorf("wait for %s: %w", what, errors.Join(lookErr, &exitedError{daemon}))
		}
		if err := clock.Sleep(ctx, 100*time.Millisecond); err != nil {
			return fmt.Errorf("wait for %s: %w", what, err)
		}
	}
}

// exitedError is returned by a wait when the daemon that it waits for has exited.
type exitedError struct{ daemon string }

func (e *exitedError) Error() string { return e.daemon + " exited" }

// ended reports whether a started daemon has exited. A daemon joins the lab's cgroup a moment after
// its start, or much later on a busy machine: until then it is known only by its PID.
func (l *Lab) ended(daemon string, g group, since time.Time) (bool, error) {
	if time.Since(since) < 2*time.Second {
		return false, nil
	}
	running, err := g.processes()
	if err != nil {
		return false, err
	}
	if daemon == holder && l.pid(holder, running) == 0 {
		return len(running) == 0, nil // Its id is written when all is made.
	}
	return l.pid(daemon, running) == 0 && !l.started(daemon), nil
}
