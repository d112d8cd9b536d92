//go:build linux

package install

import (
	"fmt"
	"os"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/pmk-sched/pmk-sched/internal/fleet"
	"github.com/pmk-sched/pmk-sched/test/internal/labs"
	"github.com/pmk-sched/pmk-sched/test/internal/run"
)

// writeFleetKubeconfig writes the administrator's kubeconfig of a lab with the wave of its cluster.
func writeFleetKubeconfig(t *testing.T, n *labs.Node, file string, wave int) {
	t.Helper()
	config, err := clientcmd.LoadFromFile(n.Lab.Kubeconfig())
	if err != nil {
		t.Fatal(err)
	}
	config.Contexts[config.CurrentContext].Extensions = map[string]runtime.Object{
		"pmk-sched.io/labels": &runtime.Unknown{Raw: fmt.Appendf(nil, `{"wave": "%d"}`, wave), ContentType: "application/json"},
	}
	text, err := clientcmd.Write(*config)
	if err == nil {
		err = os.WriteFile(file, text, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// turns returns cluster, wave and state of each turn of a rollout.
func turns(t *testing.T, result run.Result) (list []string) {
	t.Helper()
	for _, turn := range run.Decode[[]fleet.Turn](t, result.Stdout) {
		list = append(list, fmt.Sprintf("%s %s %s", turn.Cluster, turn.Wave, turn.State))
	}
	return list
}

func equal(t *testing.T, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
