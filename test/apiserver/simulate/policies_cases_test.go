//go:build linux && cases

package simulate

import (
	"encoding/xml"
	"strings"
	"testing"

	"github.com/pmk-sched/pmk-sched/test/internal/apiserver"
	"github.com/pmk-sched/pmk-sched/test/internal/run"
)

// Expectations that are not met name the pods, the nodes and the scheduler's reason, as JUnit too.
// A preset that packs pods changes nothing where only one node has room.
func TestPoliciesThatAreNotMet(t *testing.T) {
	t.Parallel()
	cluster := node("a", 4, "", "") + node("b", 8, "", "") +
		pod("low", "3", "", "nodeName: a", "phase: Running") +
		pod("high", "8", "", "priority: 1000\nnodeSelector: {kubernetes.io/hostname: b}", "") +
		pod("small", "1", "", "priority: 10", "") + pod("old", "2", "", "nodeName: b", "phase: Running")
	file := run.WriteFile(t, "policy.yaml", `apiVersion: pmk-sched.io/v1alpha1
kind: SchedulingTest
expect:
- {name: nothing is evicted, pod: shop/*, evicts: "*/*", count: 0}
- {name: all have nodes, pod: "*/*", node: "*"}
- {name: packs, steps: [{scenario: drain, nodes: [b]}], pod: shop/old, pending: ""}
- {name: the same place, sameAs: {preset: binpack}}
`)
	r := run.PMKSched(t, "test", "--snapshot", run.WriteFile(t, "cluster.yaml", cluster), "--branch", apiserver.Release,
		"-o", "junit", file)
	r.Fails(t, 3, "error: ")
	var suites struct {
		Failures int `xml:"failures,attr"`
		Suites   []struct {
			Cases []struct {
				Name    string `xml:"name,attr"`
				Failure *struct {
					Message string `xml:"message,attr"`
					Text    string `xml:",chardata"`
				} `xml:"failure"`
			} `xml:"testcase"`
		} `xml:"testsuite"`
	}
	if err := xml.Unmarshal([]byte(r.Stdout), &suites); err != nil {
		t.Fatal(err)
	}
	cases := suites.Suites[0].Cases
	equal(t, "cases", 4, len(cases))
	equal(t, "failures", 2, suites.Failures)
	for i, want := range []string{"shop/high: evicts shop/old", "shop/old: evicted by shop/high", "", ""} {
		if f := cases[i].Failure; (f == nil) != (want == "") || f != nil && !strings.Contains(f.Text, want) {
			t.Errorf("%s: got %+v, want %q", cases[i].Name, f, want)
		}
	}
}
