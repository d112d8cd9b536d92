package pack_test

import (
	"testing"

	"github.com/pmk-sched/pmk-sched/internal/artifact/pack"
)

func TestOnlyBundledPluginsHaveRules(t *testing.T) {
	const bundled = "github.com/pmk-sched/pmk-sched/scheduler/plugins"
	for name := range pack.DeclaredRules() {
		if pack.RulesOfPackage(bundled+"/"+name) == nil {
			t.Errorf("%s has no rules", name)
		}
	}
	for _, other := range []string{
		"", "timestamp", bundled, bundled + "/", bundled + "/none", bundled + "/timestamp/internal",
		"example.com/scheduler/plugins/timestamp", "example.com/fork/" + bundled + "/timestamp",
	} {
		if pack.RulesOfPackage(other) != nil {
			t.Errorf("%s has the rules of a bundled plugin", other)
		}
	}
	rules, err := pack.RulesOfPackage(bundled + "/timestamp")(nil)
	if err != nil || len(rules) != 1 || len(rules[0].Resources) != 1 || rules[0].Resources[0] != "pods" {
		t.Errorf("rules of timestamp: %+v, %v", rules, err)
	}
}
