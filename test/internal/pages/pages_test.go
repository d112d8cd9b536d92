package pages_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pmk-sched/pmk-sched/test/internal/pages"
	"github.com/pmk-sched/pmk-sched/test/internal/run"
)

func TestOutputIsComparedWithoutWhatChanges(t *testing.T) {
	seen := []string{
		"✓ apply (0.4s)", "pod  web-7b6c8945d6-6tnzg", "ConfigMap/web-config-67d08a4a55 created", "done, revision 2",
	}
	for name, tc := range map[string]struct {
		want []string
		same bool
	}{
		"equal":                  {seen, true},
		"other figures":          {[]string{"✓ apply (12.0s)", "pod web-8f457ff7aa-6xb2b", "ConfigMap/web-config-e891cf7bfd created", seen[3]}, true},
		"lines left out":         {[]string{"✓ apply (0.4s)", "…", "done, revision 2"}, true},
		"text left out":          {[]string{"…", "ConfigMap/… created", "done…"}, true},
		"first line left out":    {[]string{seen[1], seen[2], seen[3]}, false},
		"last line left out":     {seen[:3], false},
		"everything left out":    {[]string{"…"}, true},
		"no output":              {nil, false},
		"another number":         {[]string{"…", "done, revision 3"}, false},
		"a line that is not":     {[]string{"…", "failed", "…"}, false},
		"lines in another order": {[]string{seen[1], seen[0], "…"}, false},
	} {
		if got := pages.Compare(tc.want, seen); (got == "") != tc.same {
			t.Errorf("%s: %q", name, got)
		}
	}
	if got := pages.Compare(nil, nil); got != "" {
		t.Errorf("no output, as printed: %q", got)
	}
}

func TestPageIsRunInItsOrder(t *testing.T) {
	page := run.WriteFile(t, "page.md", strings.Join([]string{
		"# Page", "<!-- file: a.yaml -->", "```yaml", "a: 1", "```", "<!-- file: dir/copy go.mod -->",
		"<!-- run: master -->", "```console", "$ one \\", "    two", "seen one", "$ three", "```", "```sh", "not run", "```", "",
	}, "\n"))
	var commands []string
	pages.Run(t, page, run.Root(), func(t *testing.T, place, dir, command string) (string, error) {
		commands = append(commands, place+": "+command)
		if len(commands) == 2 {
			return "", nil
		}
		text, err := os.ReadFile(filepath.Join(dir, "a.yaml"))
		_, missing := os.Stat(filepath.Join(dir, "dir/copy"))
		if string(text) != "a: 1\n" {
			t.Errorf("a.yaml has %q", text)
		}
		return "seen one\n", errors.Join(err, missing)
	})
	if diff := cmp.Diff([]string{"master: one \\\n    two", "master: three"}, commands); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
