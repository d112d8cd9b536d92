package shadow

import (
	"strings"
	"testing"
)

func TestTiesAreRecognizedByAskingAgain(t *testing.T) {
	for _, tc := range []struct {
		name     string
		selected []string // repeated
		tied     bool
		asked    int
	}{
		{"the observed node at once", []string{"observed"}, true, 1},
		{"the observed node later", []string{"a", "a", "observed"}, true, 3},
		{"always another one", []string{"a"}, false, 14},
		{"one of two others", []string{"a", "b"}, false, 24},
		{"one of many", strings.Fields("a a b a c b d e f g h"), true, 8},
	} {
		d := draws{nodes: map[string]bool{}}
		tied, settled := false, false
		for !settled {
			d.add(tc.selected[d.n%len(tc.selected)])
			tied, settled = d.tied("observed")
		}
		if tied != tc.tied || d.n != tc.asked {
			t.Errorf("%s: %v after %d", tc.name, tied, d.n)
		}
	}
}
