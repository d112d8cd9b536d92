//go:build matrix

package matrix

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/pmk-sched/pmk-sched/internal/artifact/build"
	"github.com/pmk-sched/pmk-sched/internal/artifact/image"
	"github.com/pmk-sched/pmk-sched/test/internal/documents"
	"github.com/pmk-sched/pmk-sched/test/internal/schedulers"
	"github.com/pmk-sched/pmk-sched/versions"
)

// row is the result for one release.
type row struct {
	Release            versions.Release
	Outcome, Built     string
	Go, APIs           string
	Binary, Image      string
	Presets, Documents count
	Losses             int
}

func header() []string {
	return []string{"release", "Go", "config API", "kube-scheduler", "image", "presets", "documents"}
}

func (r *row) describe(s *schedulers.Scheduler) {
	r.Go, r.Binary = s.Info.Go, megabytes(s.Size)
	r.APIs = strings.Join(documents.APIs(s.Rules), ", ")
}

// cells returns the columns of the table in docs/releases.md, which are the same in every run.
func (r row) cells() []string {
	converted := r.Documents.String()
	if r.Losses > 0 {
		converted += fmt.Sprintf(", %d with losses", r.Losses)
	}
	return []string{r.Release.String(), r.Go, r.APIs, r.Binary, r.Image, r.Presets.String(), converted}
}

// printed returns the cells, and the build time and outcome of this run. The time is not in the
// table, since it depends on the machine.
func (r row) printed() []string { return append(r.cells(), r.Built, r.Outcome) }

func megabytes(bytes int64) string { return fmt.Sprintf("%d MB", (bytes+500_000)/1_000_000) }

// packed adds the scheduler to a busybox image, and returns the compressed size of the layers.
func packed(t *testing.T, s *schedulers.Scheduler) string {
	t.Helper()
	platform := build.Host().String()
	made, err := image.Build(t.Context(), image.Options{
		Base: image.Base{Busybox: "/bin/busybox"}, Platforms: []string{platform}, Entrypoint: []string{image.SchedulerPath},
		Files: map[string][]image.File{platform: {{Path: image.SchedulerPath, Source: s.Path}}},
	})
	if err != nil {
		t.Errorf("pack an image: %v", err)
		return "-"
	}
	manifest, err := made.Images[platform].Manifest()
	if err != nil {
		t.Errorf("pack an image: %v", err)
		return "-"
	}
	var size int64
	for _, layer := range manifest.Layers {
		size += layer.Size
	}
	return megabytes(size)
}

// table returns a Markdown table.
func table(head []string, rows []row, cells func(row) []string) string {
	var text strings.Builder
	line := func(cells []string) { fmt.Fprintf(&text, "| %s |\n", strings.Join(cells, " | ")) }
	line(head)
	fmt.Fprintf(&text, "|%s\n", strings.Repeat("---|", len(head)))
	for _, r := range rows {
		line(cells(r))
	}
	return text.String()
}

// readme compares the rows of the table in docs/releases.md with the results, or writes them.
func readme(t *testing.T, rows []row) {
	t.Helper()
	if os.Getenv(schedulers.EnvGo) != "" {
		return // the table has the versions of Go that the releases name
	}
	const path = "../../../docs/releases.md"
	read, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	text := string(read)
	for _, r := range rows {
		line := "| " + strings.Join(r.cells(), " | ") + " |\n"
		switch {
		case strings.Contains(text, line) || r.Outcome != "ok":
		case *update:
			text = regexp.MustCompile(`(?m)^\| `+regexp.QuoteMeta(r.Release.String())+` \|.*\n`).ReplaceAllLiteralString(text,
				line)
		default:
			t.Errorf(
				"the table in docs/releases.md has no line\n%s(go test -tags matrix ./test/binary/matrix -update writes it)", line)
		}
	}
	if *update {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}
