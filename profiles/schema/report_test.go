package schema

import "testing"

func TestNoteInAFile(t *testing.T) {
	for want, c := range map[string]struct {
		note Note
		file string
	}{
		"plugin X enabled":                     {Note{Message: "plugin X enabled"}, ""},
		"defaulted":                            {Note{Message: "defaulted", Line: 3}, ""},
		"plugin Y enabled":                     {Note{Message: "plugin Y enabled"}, "config.yaml"},
		"config.yaml:3: renamed":               {Note{Message: "renamed", Line: 3}, "config.yaml"},
		"lost: config.yaml:7: field not known": {Note{Message: "field not known", Line: 7, Loss: true}, "config.yaml"},
	} {
		if got := c.note.In(c.file); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
