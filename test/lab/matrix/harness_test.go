//go:build linux && labs

package matrix

import (
	"os"
	"testing"

	"github.com/pmk-sched/pmk-sched/test/internal/labs"
	"github.com/pmk-sched/pmk-sched/versions"
)

func TestMain(m *testing.M) {
	code := labs.Main(m)
	printTable(os.Stdout)
	os.Exit(code)
}

// subject is a release on one shape of master, with the config API that the release itself writes.
type subject struct{ release, layout, api string }

func (s subject) minor(t *testing.T) int {
	t.Helper()
	release, err := versions.Parse(s.release)
	if err != nil {
		t.Fatal(err)
	}
	return release.Minor
}

// image is the reference of the scheduler that is built for the release.
func (s subject) image() string { return "localhost/my-scheduler:" + s.release }

// labelKey returns the key of the control-plane node's role label.
func (s subject) labelKey() string {
	if s.layout == "pmk" {
		return "node-role.kubernetes.io/master"
	}
	return "node-role.kubernetes.io/control-plane"
}

func (s subject) taint() string {
	if s.layout == "pmk" {
		return s.labelKey() + "=true:NoSchedule"
	}
	return s.labelKey() + "=:NoSchedule"
}

func (s subject) kubeconfig() string {
	if s.layout == "pmk" {
		return "/etc/pf9/kube.d/kubeconfigs/kube-scheduler.yaml"
	}
	return "/etc/kubernetes/scheduler.conf"
}

// node is the control-plane node of the one lab that runs at a time.
type node struct {
	subject
	*labs.Node
}

// up starts the lab, which is taken down when the test ends.
func up(t *testing.T, s subject) node {
	t.Helper()
	return node{s, labs.Start(t, labs.Options{Release: s.release, Layout: s.layout})}
}
