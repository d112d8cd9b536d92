package handmade_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/pmk-sched/pmk-sched/internal/deploy/handmade"
	"github.com/pmk-sched/pmk-sched/test/golden"
)

// The whole result of each file is in a golden file: the request, and what becomes of each part.
func TestRead(t *testing.T) {
	files, err := filepath.Glob("testdata/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatal(err)
	}
	for _, article := range []string{"manifest.yaml", "manifest-as-printed.yaml"} {
		files = append(files, filepath.Join("../../../test/testdata/article", article))
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			source, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			golden.Equal(t, filepath.Join("testdata", strings.TrimSuffix(filepath.Base(file), ".yaml")+".txt"),
				result(handmade.Read(filepath.Base(file), source)))
		})
	}
}

func result(read *handmade.Scheduler, err error) []byte {
	var b strings.Builder
	if err != nil || read == nil {
		fmt.Fprintf(&b, "error %v\n", err)
		return []byte(b.String())
	}
	for _, i := range read.Items {
		fmt.Fprintf(&b, "%-7s  %s: %s\n", i.Action, i.Subject, i.Detail)
	}
	text, err := yaml.Marshal(read.Request)
	fmt.Fprintf(&b, "---\n%s", text)
	if err != nil {
		fmt.Fprintln(&b, err)
	}
	for _, o := range read.Objects {
		fmt.Fprintf(&b, "replaces %s %s/%s\n", o.Kind, o.Namespace, o.Name)
	}
	return []byte(b.String())
}

// A source of many small documents takes no time that grows with their square.
func TestReadRefusesTooManyDocuments(t *testing.T) {
	read, err := handmade.Read("many", []byte(strings.Repeat("a: [\n---\n", 100_000)))
	if read != nil || err != nil {
		t.Errorf("got %v, %v", read, err)
	}
}
