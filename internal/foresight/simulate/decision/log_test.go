package decision

import (
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
)

// The scores are the same in the form of each release.
func TestParseLog(t *testing.T) {
	want := &Scores{
		Total:     map[string]int64{"a": 475, "b": 300},
		Plugins:   map[string]map[string]int64{"NodeAffinity": {"a": 200, "b": 0}, "TaintToleration": {"a": 300, "b": 300}},
		Extenders: map[string]map[string]int64{"http://127.0.0.1:8888/x": {"a": 5, "b": 0}},
	}
	const structured = `I1122 21:05:13.482 7 scheduler.go:461] "Attempting to schedule pod" pod="shop/web"
I1122 21:05:13.483123   77 FILE] "Plugin scored node for pod" pod="shop/web" plugin="NodeAffinity" node="a" score=200
I1122 21:05:13.483123   77 FILE] "Plugin scored node for pod" pod="shop/web" plugin="NodeAffinity" node="b" score=0
I1122 21:05:13.483123   77 FILE] "Plugin scored node for pod" pod="shop/web" plugin="TaintToleration" node="a" score=300
I1122 21:05:13.483123   77 FILE] "Plugin scored node for pod" pod="shop/web" plugin="TaintToleration" node="b" score=300
I1122 21:05:13.483123   77 FILE] "Extender scored node for pod" pod="shop/web" extender="http://127.0.0.1:8888/x" node="a" score=5
I1122 21:05:13.483123   77 FILE] "Extender scored node for pod" pod="shop/web" extender="http://127.0.0.1:8888/x" node="b" score=0
I1122 21:05:13.483123   77 FILE] "Plugin scored node for pod" pod="shop/other" plugin="NodeAffinity" node="a" score=1
I1122 21:05:13.483123   77 FILE] "Calculated node's final score for pod" pod="shop/web" node="a" score=475
I1122 21:05:13.483123   77 FILE] "Calculated node's final score for pod" pod="shop/web" node="b" score=300
`
	const old = `I1122 21:05:13.482000    7 scheduler.go:461] Attempting to schedule pod: shop/web
I1122 21:05:13.483000    7 generic_scheduler.go:504] Plugin NodeAffinity scores on shop/web => [{a 200} {b 0}]
I1122 21:05:13.483000    7 generic_scheduler.go:504] Plugin TaintToleration scores on shop/web => [{a 300} {b 300}]
I1122 21:05:13.483000    7 generic_scheduler.go:504] Plugin TaintToleration scores on shop/other => [{a 1} {b 1}]
I1122 21:05:13.483000    7 generic_scheduler.go:542] web_shop -> a: http://127.0.0.1:8888/x, Score: (5)
I1122 21:05:13.483000    7 generic_scheduler.go:542] web_shop -> b: http://127.0.0.1:8888/x, Score: (0)
I1122 21:05:13.483000    7 generic_scheduler.go:560] Host a => Score 475
I1122 21:05:13.483000    7 generic_scheduler.go:560] Host b => Score 300
`
	again := strings.ReplaceAll(structured, "FILE", "schedule_one.go:643")
	for name, tt := range map[string]struct {
		log  string
		want *Scores
	}{
		"1.20":         {old, want},
		"1.21 to 1.23": {strings.ReplaceAll(structured, "FILE", "generic_scheduler.go:442"), want},
		"1.24 to 1.37": {again, want},
		"a second cycle replaces the scores": {
			again + strings.ReplaceAll(strings.ReplaceAll(again, "score=200", "score=100"), "score=475", "score=375"),
			&Scores{
				Total: map[string]int64{"a": 375, "b": 300},
				Plugins: map[string]map[string]int64{"NodeAffinity": {"a": 100, "b": 0},
					"TaintToleration": want.Plugins["TaintToleration"]},
				Extenders: want.Extenders,
			},
		},
		"a second cycle that scores nothing":   {again + again[:strings.Index(again, "\n")+1], want},
		"the log ends in the middle of a line": {strings.TrimSuffix(again, "\n") + "\nI1122 21:05:13.48", want},
		"nothing was scored": {
			"I1122 21:05:13.482 7 scheduler.go:461] \"Attempting to schedule pod\" pod=\"shop/web\"\nother output\n", nil},
		"empty": {"", nil},
		"1.20, in the middle of other messages": {
			`I1122 21:05:13.482000    7 generic_scheduler.go:542] web_other -> a: http://127.0.0.1:8888/x, Score: (7)` + "\n" + old +
				`I1122 21:05:13.482000    7 x.go:1] Plugin X scores on shop/other => [{a 1}]` + "\n" +
				`I1122 21:05:13.482000    7 x.go:1] "an open quote` + "\n", want},
		"1.20, a second cycle": {
			old + strings.ReplaceAll(strings.ReplaceAll(old, "{a 200}", "{a -1}"), "Score 475", "Score 274"),
			&Scores{
				Total: map[string]int64{"a": 274, "b": 300},
				Plugins: map[string]map[string]int64{"NodeAffinity": {"a": -1, "b": 0},
					"TaintToleration": want.Plugins["TaintToleration"]},
				Extenders: want.Extenders,
			},
		},
		"messages about the pod without a score": {
			strings.ReplaceAll(again, "I1122 21:05:13.483123", "I1122 21:05:13.483123   77 x.go:1] \"Found node\" pod=\"shop/web\"\n"+
				"I1122 21:05:13.483123"), want},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := ParseLog(strings.NewReader(tt.log), "shop", "web")
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestScoresThatAreNotNumbersAreErrors(t *testing.T) {
	const huge = "99999999999999999999"
	for name, message := range map[string]string{
		"a word":               `"Plugin scored node for pod" pod="shop/web" plugin="X" node="a" score=high`,
		"no score":             `"Calculated node's final score for pod" pod="shop/web" node="a"`,
		"too large, a plugin":  `Plugin X scores on shop/web => [{a 1} {b ` + huge + `}]`,
		"too large, a node":    `Host a => Score ` + huge,
		"too large, extenders": `web_shop -> a: http://x, Score: (` + huge + `)`,
	} {
		line := "I1122 21:05:13.483123   77 schedule_one.go:643] " + message + "\n"
		if got, err := ParseLog(strings.NewReader(line+line), "shop", "web"); err == nil {
			t.Errorf("%s: got %+v", name, got)
		}
	}
	if got, err := ParseLog(iotest.ErrReader(io.ErrUnexpectedEOF), "shop", "web"); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("a log that cannot be read: %+v, %v", got, err)
	}
}
