package extender

import (
	"slices"
	"strings"
	"testing"
	"time"
)

// Each limit alone decides whom a new member ends, and those that have served a request end last.
func TestWhomAMemberOfACrowdEnds(t *testing.T) {
	for name, c := range map[string]struct {
		total, perAddress int
		members           string // NAME@ADDRESS, the oldest first; NAME* has served a request
		want              string
	}{
		"room for one more of the address":     {9, 3, "a@1 b@1 c@1", ""},
		"one more than the address may have":   {9, 3, "a@1 b@1 x@2 c@1 d@1", "a"},
		"the oldest of all has another origin": {9, 2, "x@2 a@1 b@1 c@1", "a"},
		"room for one more of all":             {4, 9, "a@1 x@2 b@1 c@1", ""},
		"one more than all may be":             {4, 9, "x@2 a@1 b@1 c@1 d@3", "a"},
		"it has served a request":              {9, 3, "a*@1 b@1 c@1 d@1", "b"},
		"all have served a request":            {9, 3, "a*@1 b*@1 c*@1 d@1", "a"},
		"the youngest has served none":         {9, 3, "a*@1 b*@1 c@1 d@1", "c"},
	} {
		var ended []string
		crowd, begin := newCrowd(c.total, c.perAddress), time.Now()
		for i, member := range strings.Fields(c.members) {
			key, address, _ := strings.Cut(member, "@")
			key, served := strings.CutSuffix(key, "*")
			at := begin.Add(time.Duration(i) * time.Second)
			crowd.enter(key, address+":80", at, func() { ended = append(ended, key) })
			if served {
				crowd.renew(key, at, true)
			}
		}
		if want := strings.Fields(c.want); !slices.Equal(ended, want) {
			t.Errorf("%s: ended %q, expected %q", name, ended, want)
		}
	}
}
