package pack_test

import (
	"testing"

	"github.com/pmk-sched/pmk-sched/internal/artifact/pack"
)

// FuzzRules searches arguments of plugins that crash their parsers, or grant a permission without
// naming its resource.
func FuzzRules(f *testing.F) {
	for _, args := range []string{
		`{}`, `{"prometheus": {"url": "http://p:9090"}, "metrics": [{"name": "cpu", "maxPercent": 80}]}`,
		`{"namespaces": ["a"], "message": "m"}`,
		`{"source": {"apiVersion": "example.com/v1", "resource": "nodemetrics", "path": "status.rtt"}}`, "namespaces: [a]\n",
		`null`, `[]`,
	} {
		f.Add([]byte(args))
	}
	all := pack.DeclaredRules()
	f.Fuzz(func(t *testing.T, args []byte) {
		for name, rules := range all {
			granted, err := rules(args)
			if err != nil {
				continue
			}
			for _, rule := range granted {
				if len(rule.Verbs) == 0 || len(rule.Resources)+len(rule.NonResourceURLs) == 0 {
					t.Errorf("%s: a rule without verbs or resources: %+v", name, rule)
				}
				for _, resource := range rule.Resources {
					if resource == "" || resource == "*" {
						t.Errorf("%s: a rule for resource %q: %+v", name, resource, rule)
					}
				}
			}
		}
	})
}
