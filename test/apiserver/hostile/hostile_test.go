//go:build linux

package hostile

import "testing"

func (f *fixture) tryRecords(t *testing.T) {
	for name, schedulers := range map[string][]string{
		"upgrade":  {"reads-key", "reads-plugin", "reads-base", "reads-file", "fetches", "executes", "pushes"},
		"rollback": {"reads-key", "escalates"}, "credentials refresh": {"reads-key"}, "fleet upgrade": {"reads-key", "pushes"},
	} {
		c := commands()[name]
		for _, args := range f.calls(t, name, schedulers...) {
			f.try(t, c, args)
			f.restore(t, args)
		}
	}
}
