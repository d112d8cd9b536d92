//go:build linux

package simulate

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/pmk-sched/pmk-sched/internal/artifact/pack"
	"github.com/pmk-sched/pmk-sched/internal/foresight/simulate/load"
	"github.com/pmk-sched/pmk-sched/internal/foresight/simulate/scenario"
	"github.com/pmk-sched/pmk-sched/test/internal/apiserver"
)

// definition returns a CustomResourceDefinition in the group.
func definition(t *testing.T, group string) map[string]any {
	t.Helper()
	return readManifests(t, fmt.Sprintf(`apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: racks.%[1]s}
spec:
  group: %[1]s
  scope: Cluster
  names: {kind: Rack, plural: racks}
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}]
`, group))[0]
}

// Runs on one API server do not see the nodes, the pods and the custom resources of the run before,
// which the API server forgets a moment after they are gone from etcd.
func TestRunsSeeNothingOfTheRunBefore(t *testing.T) {
	t.Parallel()
	var definitions, racks []map[string]any
	for i := range 10 {
		group := fmt.Sprintf("g%d.example.com", i)
		definitions = append(definitions, definition(t, group))
		racks = append(racks, map[string]any{"apiVersion": group + "/v1", "kind": "Rack",
			"metadata": map[string]any{"name": "one"}})
	}
	many := strings.Builder{}
	for i := range 30 {
		name := fmt.Sprintf("n%d", i)
		many.WriteString(node(name, 4, "", "") + pod("on-"+name, "1", "", "nodeName: "+name, "phase: Running"))
	}
	withSimulator(t, apiserver.Release, func(s *simulator) error {
		o := s.options(t, newObjects(t, many.String()+pod("web", "1", "", "", "")), pack.Scheduler{})
		o.Scenario = scenario.Pending()
		o.Observer = whenLoaded{do: func(ctx context.Context, cfg *rest.Config) error {
			return load.Others(ctx, cfg, slices.Concat(definitions, racks))
		}}
		if _, err := s.server.Run(t.Context(), o); err != nil {
			return err
		}
		o = s.options(t, newObjects(t, node("only", 4, "", "")+pod("web", "1", "", "", "")), pack.Scheduler{})
		o.Scenario = scenario.Pending()
		r, err := s.server.Run(t.Context(), o)
		if err != nil {
			return err
		}
		equal(t, "placements", map[string]string{"web": "only"}, nodesOf(*r))
		equal(t, "nodes", 1, r.Summary.Nodes)
		return nil
	})
}
