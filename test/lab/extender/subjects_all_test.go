//go:build linux && labs

package extender

import (
	"testing"

	"github.com/pmk-sched/pmk-sched/test/internal/labs"
)

var subjects = []labs.Options{
	{Release: "v1.22.2", Layout: "kubeadm", Workers: 2}, {Release: "v1.24.3", Layout: "kubeadm", Workers: 2},
	{Release: "v1.33.13", Layout: "kubeadm", Workers: 2}, {Release: "v1.37.1", Layout: "kubeadm", Workers: 2},
}

func labOf(t *testing.T, o labs.Options) *labs.Node {
	t.Helper()
	return labs.Start(t, o)
}
