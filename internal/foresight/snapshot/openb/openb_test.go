package openb_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/foresight/snapshot/openb"
	"github.com/pmk-sched/pmk-sched/test/golden"
)

// The lists have the form of the trace; the numbers are our own.
const (
	nodeList = "sn,cpu_milli,memory_mib,gpu,model\nnode-0,32000,262144,0,\nnode-1,96000,524288,2,T4\n"
	podList  = "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time\n" +
		"pod-0,12000,16384,1,1000,,LS,Running,0,12537496,0\n" +
		"pod-1,6000,12288,1,460,T4|P100,BE,Pending,427061,12902960,\n" +
		"pod-2,500,0,0,0,,,Failed,427062,12902960,427062\n"
)

func TestObjectsOfTheTrace(t *testing.T) {
	var documents []string
	keep := func(object map[string]any) error {
		text, err := yaml.Marshal(object)
		documents = append(documents, string(text))
		return err
	}
	if err := openb.Nodes(strings.NewReader(nodeList), keep); err != nil {
		t.Fatal(err)
	}
	if err := openb.Pods(strings.NewReader(podList), keep); err != nil {
		t.Fatal(err)
	}
	got := strings.Join(documents, "---\n")
	golden.Equal(t, "testdata/objects.yaml", got)
}

func TestPodsHaveTheTimesOfTheTrace(t *testing.T) {
	var changes []string
	change := func(at time.Duration, gone bool, pod map[string]any) error {
		metadata, _ := pod["metadata"].(map[string]any)
		status, _ := pod["status"].(map[string]any)
		changes = append(changes, fmt.Sprint(at, " ", metadata["name"], " ", status["phase"], " ", gone))
		return nil
	}
	err := openb.Changes(strings.NewReader(podList), func(map[string]any) error { return nil }, change)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"0s pod-0 Pending false", "0s pod-0 Running false", "3482h38m16s pod-0 Succeeded true",
		"118h37m41s pod-1 Pending false", "3584h9m20s pod-1 Pending true", // never scheduled
		"118h37m42s pod-2 Pending false", "118h37m42s pod-2 Running false", "3584h9m20s pod-2 Failed true",
	}
	if diff := cmp.Diff(want, changes); diff != "" {
		t.Errorf("changes (-want +got):\n%s", diff)
	}
}

func TestListsAreRecognized(t *testing.T) {
	cases := map[string]struct {
		text        string
		nodes, pods bool
	}{
		"nodes":           {nodeList, true, false},
		"pods":            {podList, false, true},
		"with a mark":     {"\ufeff" + nodeList, true, false},
		"YAML":            {"apiVersion: v1", false, false},
		"another table":   {"name,cpu\n", false, false},
		"nothing":         {"", false, false},
		"a part of a row": {"sn,cpu", false, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if nodes, pods := openb.IsNodes([]byte(tc.text)), openb.IsPods([]byte(tc.text)); nodes != tc.nodes ||
				pods != tc.pods {
				t.Errorf("nodes %t, pods %t", nodes, pods)
			}
		})
	}
}

func TestWrongRowsAreRefused(t *testing.T) {
	head := "sn,cpu_milli,memory_mib,gpu,model\n"
	cases := map[string]struct{ text, want string }{
		"another header":  {"a,b\n", "expected a list"},
		"nothing":         {"", "expected a list"},
		"a short row":     {head + "n,1\n", "wrong number of fields"},
		"a word":          {head + "n,1,2,3,T4\nn,x,2,3,T4\n", "line 3: cpu_milli"},
		"below zero":      {head + "n,-1,2,3,T4\n", "line 2: cpu_milli"},
		"too large":       {head + "n,1,99999999999,3,T4\n", "line 2: memory_mib"},
		"an open quote":   {head + "\"n,1,2,3,T4\n", "quote"},
		"a fraction":      {head + "n,1,2,0.5,T4\n", "line 2: gpu"},
		"not even a name": {head + ",,,,\nn,1,x,3,\n", "line 3: memory_mib"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			err := openb.Nodes(strings.NewReader(tc.text), func(map[string]any) error { return nil })
			if err == nil || !strings.Contains(err.Error(), tc.want) || !problem.IsInvalid(err) {
				t.Errorf("got %v, want %q", err, tc.want)
			}
		})
	}
}

// FuzzPods searches lists that crash the reader, or make objects that cannot be encoded.
func FuzzPods(f *testing.F) {
	f.Add(podList)
	f.Add(podList + "a,1,1,999999999,999999999,,,,1,,\n")
	f.Fuzz(func(t *testing.T, text string) {
		_ = openb.Pods(strings.NewReader(text), func(object map[string]any) error { // an error is as good as objects
			_, err := json.Marshal(object)
			if err != nil {
				t.Fatal(err)
			}
			return nil
		})
	})
}
