package pack

import "testing"

func TestASchedulerDoesNotOverruleTheRules(t *testing.T) {
	for name, c := range map[string]struct {
		rules   bool
		refusal string
		valid   bool
		reasons int
	}{
		"both accept":           {true, "", true, 0},
		"only the rules reject": {false, "", false, 1},
		"only it rejects":       {true, "refused", false, 1},
		"both reject":           {false, "refused", false, 2},
	} {
		v := &Validation{Valid: c.rules}
		if !c.rules {
			v.Reasons = []string{"rejected"}
		}
		v.addBinary("a kube-scheduler", c.refusal)
		if v.Valid != c.valid || len(v.Reasons) != c.reasons {
			t.Errorf("%s: valid is %v for %q", name, v.Valid, v.Reasons)
		}
	}
}
