package openb_test

import (
	"encoding/json"
	"errors"
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
	nodeList  = "sn,cpu_milli,memory_mib,gpu,model\nnode-0,32000,262144,0,\nnode-1,96000,524288,2,T4\n"
	podHeader = "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time," +
		"scheduled_time\n"
	podList = podHeader +
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

// The authors' lists with more pods that need several GPUs have no columns after the requests.
func TestPodsWithRequestsOnly(t *testing.T) {
	const head = "name,cpu_milli,memory_mib,num_gpu,gpu_milli"
	var got []string
	keep := func(object map[string]any) error {
		text, err := json.Marshal(object["spec"])
		got = append(got, string(text))
		return err
	}
	if err := openb.Pods(strings.NewReader(head+"\npod-0,12000,16384,8,1000\n"), keep); err != nil {
		t.Fatal(err)
	}
	want := []string{"null", `{"containers":[{"image":"openb.invalid/pod:1","name":"main","resources":{` +
		`"limits":{"alibabacloud.com/gpu-milli":"8000"},` +
		`"requests":{"alibabacloud.com/gpu-milli":"8000","cpu":"12000m","memory":"16384Mi"}}}],` +
		`"schedulerName":"default-scheduler"}`}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for _, header := range []string{"name,cpu_milli,memory_mib,num_gpu", head + ",qos"} {
		err := openb.Pods(strings.NewReader(header+"\n"), keep)
		if err == nil || !strings.Contains(err.Error(), "expected a list with the columns") || !problem.IsInvalid(err) {
			t.Errorf("%s: got %v", header, err)
		}
	}
}

// changes returns the steps of the pods of a list, each in one line.
func changes(list string) (all []string, err error) {
	err = openb.Changes(strings.NewReader(list), func(map[string]any) error { return nil },
		func(at time.Duration, gone bool, pod map[string]any) error {
			metadata, _ := pod["metadata"].(map[string]any)
			status, _ := pod["status"].(map[string]any)
			line := fmt.Sprint(at, " ", metadata["name"], " ", metadata["uid"], " ", status["phase"], " ", gone)
			if conditions, ok := status["conditions"]; ok {
				line += fmt.Sprint(" ", conditions)
			}
			all = append(all, line)
			return nil
		})
	return all, err
}

func TestPodsHaveTheTimesOfTheTrace(t *testing.T) {
	const scheduled = " [map[status:True type:PodScheduled]]"
	for _, tc := range []struct {
		list string
		want []string
	}{
		{podList, []string{
			"0s pod-0 openb-pod-0 Pending false", "0s pod-0 openb-pod-0 Running false" + scheduled,
			"3482h38m16s pod-0 openb-pod-0 Succeeded true",
			"118h37m41s pod-1 openb-pod-1 Pending false", "3584h9m20s pod-1 openb-pod-1 Pending true", // never scheduled
			"118h37m42s pod-2 openb-pod-2 Pending false", "118h37m42s pod-2 openb-pod-2 Running false" + scheduled,
			"3584h9m20s pod-2 openb-pod-2 Failed true",
		}},
		// A pod that the trace does not remove, and steps before the ones that they follow.
		{podHeader + "a,1,1,0,0,,,Running,5,,7\nb,1,1,0,0,,,Running,5,4,3\nc,1,1,0,0,,,Running,5,6,8\n", []string{
			"5s a openb-a Pending false", "7s a openb-a Running false" + scheduled,
			"5s b openb-b Pending false", "5s b openb-b Running false" + scheduled, "5s b openb-b Succeeded true",
			"5s c openb-c Pending false", "8s c openb-c Running false" + scheduled, "8s c openb-c Succeeded true",
		}},
	} {
		got, err := changes(tc.list)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("changes (-want +got):\n%s", diff)
		}
	}
}

// The error of a row says which one it is, and nothing of the row is used.
func TestWrongPodsAreRefused(t *testing.T) {
	const good = "good,1,1,0,0,,,Running,1,2,3\n"
	for row, want := range map[string]string{
		"n,x,1,1,1,,,Running,1,2,3": "cpu_milli", "n,1,x,1,1,,,Running,1,2,3": "memory_mib",
		"n,1,1,x,1,,,Running,1,2,3": "num_gpu", "n,1,1,1,x,,,Running,1,2,3": "gpu_milli",
		"n,1,1,1,1,,,Running,x,2,3": "creation_time",
	} {
		var pods int
		count := func(map[string]any) error { pods++; return nil }
		err := openb.Pods(strings.NewReader(podHeader+good+row+"\n"), count)
		if err == nil || !strings.HasPrefix(err.Error(), "line 3: "+want+": ") || !problem.IsInvalid(err) || pods != 2 {
			t.Errorf("%s: %d objects, %v", row, pods, err)
		}
		steps, err := changes(podHeader + good + row + "\n")
		if err == nil || !strings.HasPrefix(err.Error(), "line 3: "+want+": ") || !problem.IsInvalid(err) || len(steps) != 3 {
			t.Errorf("%s: %d changes, %v", row, len(steps), err)
		}
	}
	for row, want := range map[string]struct {
		column string
		steps  int
	}{"n,1,1,1,1,,,Running,1,x,3": {"deletion_time", 2}, "n,1,1,1,1,,,Running,1,2,x": {"scheduled_time", 1}} {
		steps, err := changes(podHeader + row + "\n")
		if err == nil || !strings.HasPrefix(err.Error(), "line 2: "+want.column+": ") || len(steps) != want.steps {
			t.Errorf("%s: %d changes, %v", row, len(steps), err)
		}
	}
	short := strings.NewReplacer(",scheduled_time", "", ",3\n", "\n").Replace(podHeader + good)
	if _, err := changes(short); err == nil || !strings.Contains(err.Error(), "expected a list with the columns") {
		t.Errorf("without times: %v", err)
	}
}

// An error of who gets the objects is not one of the list.
func TestReadingEndsWithTheFirstError(t *testing.T) {
	stop := errors.New("no space")
	for calls := range 9 {
		seen := 0
		do := func(map[string]any) error {
			if seen++; seen > calls {
				return stop
			}
			return nil
		}
		change := func(_ time.Duration, _ bool, pod map[string]any) error { return do(pod) }
		for name, read := range map[string]struct {
			list func() error
			all  int
		}{
			"nodes":   {func() error { return openb.Nodes(strings.NewReader(nodeList), do) }, 2},
			"pods":    {func() error { return openb.Pods(strings.NewReader(podList), do) }, 4},
			"changes": {func() error { return openb.Changes(strings.NewReader(podList), do, change) }, 9},
		} {
			seen = 0
			want, most := stop, calls+1
			if calls >= read.all {
				want, most = nil, read.all
			}
			if err := read.list(); !errors.Is(err, want) || problem.IsInvalid(err) || seen != most {
				t.Errorf("%s, %d calls: %v after %d", name, calls, err, seen)
			}
		}
	}
}

func TestNumbersOfAListAreBounded(t *testing.T) {
	const head = "sn,cpu_milli,memory_mib,gpu,model\n"
	var got []string
	keep := func(node map[string]any) error {
		text, err := json.Marshal(node["status"].(map[string]any)["allocatable"])
		got = append(got, string(text))
		return err
	}
	list := "\ufeff" + head + "a,1073741823,1073741823,1073741823,\nb,,,1,\nc,0,0,,\nd,1073741824,0,0,\n"
	err := openb.Nodes(strings.NewReader(list), keep)
	if err == nil || !strings.HasPrefix(err.Error(), "line 5: cpu_milli: ") {
		t.Errorf("got %v", err)
	}
	want := []string{
		`{"alibabacloud.com/gpu-milli":"1073741823000","cpu":"1073741823m","memory":"1073741823Mi","pods":"110"}`,
		`{"alibabacloud.com/gpu-milli":"1000","cpu":"0m","memory":"0Mi","pods":"110"}`, `{"cpu":"0m","memory":"0Mi","pods":"110"}`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestListsAreRecognized(t *testing.T) {
	cases := map[string]struct {
		text        string
		nodes, pods bool
	}{
		"nodes":           {nodeList, true, false},
		"pods":            {podList, false, true},
		"requests only":   {"name,cpu_milli,memory_mib,num_gpu,gpu_milli\n", false, true},
		"with a mark":     {"\ufeff" + nodeList, true, false},
		"pods, a mark":    {"\ufeff" + podList, false, true},
		"two marks":       {"\ufeff\ufeff" + nodeList, false, false},
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
		"another order":   {"sn,cpu_milli,memory_mib,model,gpu\nn,1,2,3,T4\n", "expected a list"},
		"a column less":   {"sn,cpu_milli,memory_mib,gpu\nn,1,2,3\n", "expected a list"},
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
