//go:build linux

package lab

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/pmk-sched/pmk-sched/internal/artifact/programs"
	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/versions"
)

// newBringUp checks the options of a new lab and sets their defaults. It changes nothing.
func newBringUp(o Options) (*bringUp, error) {
	if o.Name == "" {
		o.Name = DefaultName
	}
	if err := validateName(o.Name); err != nil {
		return nil, err
	}
	if o.Log == nil {
		o.Log = zap.NewNop()
	}
	l, err := findLayout(o.Layout)
	if err != nil {
		return nil, err
	}
	rules, err := versions.Select(o.Release)
	if err != nil {
		return nil, err
	}
	if o.Nodes < 0 || o.Nodes > 5000 {
		return nil, problem.Invalidf("use a number from 0 to 5000", "a lab cannot have %d workers", o.Nodes)
	}
	if o.Masters == 0 {
		o.Masters = 1
	}
	if o.Workers == 0 && l.name == LayoutHosted {
		o.Workers = 2
	}
	if err := checkNodes(l.name, o.Masters, o.Workers); err != nil {
		return nil, err
	}
	keys, err := newSecrets()
	if err != nil {
		return nil, err
	}
	if err := checkDirectories(o.Name, o.StateDir, o.CacheDir); err != nil {
		return nil, err
	}
	if o.Programs == nil {
		o.Programs = &programs.Finder{Environment: o.environment(), From: programs.Build}
	}
	lab := &Lab{dir: filepath.Join(o.StateDir, o.Name), state: state{
		Name: o.Name, Release: o.Release, Layout: l.name, Masters: o.Masters, Workers: o.Workers, Nodes: o.Nodes,
		Created: time.Now().UTC().Truncate(time.Second),
	}}
	if _, err := os.Stat(lab.dir); !errors.Is(err, fs.ErrNotExist) {
		return nil, existsError(o.Name, lab.dir)
	}
	return &bringUp{
		o: o, log: o.Log, layout: l, rules: rules, lab: lab, secrets: keys,
		programs: map[string]string{}, unlock: func() {},
	}, nil
}

// Warnings describes options that a lab can have, but that do not do what they appear to do.
func (o Options) Warnings() []string {
	if o.Layout == LayoutHosted || o.Masters < 2 || o.Masters%2 == 1 {
		return nil
	}
	tolerated := (o.Masters - 1) / 2
	return []string{fmt.Sprintf("etcd on %d control-plane nodes survives the loss of %d of them, as on %d: "+
		"an odd number, such as %d, survives one more", o.Masters, tolerated, o.Masters-1, o.Masters+1)}
}

// checkNodes refuses numbers of nodes that a layout cannot have.
func checkNodes(layout string, masters, workers int) error {
	if layout == LayoutPMK && workers != 0 {
		return problem.Invalidf("use --layout kubeadm or hosted", "layout %s has no workers with a kubelet", layout)
	}
	if masters < 1 || masters > maxMasters {
		return problem.Invalidf(fmt.Sprintf("use a number from 1 to %d", maxMasters),
			"a lab cannot have %d control-plane nodes", masters)
	}
	if workers < 0 || workers > maxWorkers {
		return problem.Invalidf(fmt.Sprintf("use a number from 0 to %d", maxWorkers),
			"a lab cannot have %d workers with a kubelet", workers)
	}
	return nil
}

// checkDirectories refuses directories that the lab's own mounts hide, and a state directory that
// would make the paths of sockets too long for the kernel.
func checkDirectories(name, stateDir, cacheDir string) error {
	for _, dir := range []string{stateDir, cacheDir} {
		if !filepath.IsAbs(dir) || strings.ContainsAny(dir, " \t\n:,\\'") {
			return problem.Invalidf("",
				"directory %q: a lab needs an absolute path without blanks, quotes, commas, colons and backslashes", dir)
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
			"directory %s: the path of containerd's socket, %s, would be longer than the %d characters that the kernel allows",
			stateDir, socket, longestSocket)
	}
	return nil
}

func existsError(name, dir string) error {
	return problem.Invalidf("use it, take it down with: pmk-lab down --name "+name+", or choose another --name",
		"%w: %s (%s)", ErrExists, name, dir)
}
