package safeio_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/base/safeio"
)

func text(content string) func(*os.File) error {
	return func(f *os.File) error {
		_, err := f.WriteString(content)
		return err
	}
}

func names(t *testing.T, dir string) (list []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		list = append(list, e.Name())
	}
	return list
}

func TestFileIsReplacedWhenItIsComplete(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := safeio.WriteFile(t.Context(), file, 0o600, text("first")); err != nil {
		t.Fatal(err)
	}
	broken := errors.New("broken")
	err := safeio.WriteFile(t.Context(), file, 0o600, func(f *os.File) error {
		return errors.Join(text("half")(f), broken)
	})
	if got, _ := os.ReadFile(file); !errors.Is(err, broken) || string(got) != "first" {
		t.Errorf("after a failure: %q, %v", got, err)
	}
	link := filepath.Join(dir, "link")
	if err := os.Symlink("file", link); err != nil {
		t.Fatal(err)
	}
	if err := safeio.WriteFile(t.Context(), link, 0o755, text("second")); err != nil {
		t.Fatal(err)
	}
	info, err := os.Lstat(file)
	if got, _ := os.ReadFile(file); err != nil || string(got) != "second" || info.Mode() != 0o755 {
		t.Errorf("through a link: %q, mode %v, %v", got, info.Mode(), err)
	}
	if got := names(t, dir); len(got) != 2 {
		t.Errorf("the directory has %q", got)
	}
}

func TestPathThatCannotBeReplacedIsRefusedBeforeTheContentIsMade(t *testing.T) {
	dir := t.TempDir()
	device := filepath.Join(dir, "device")
	if err := os.Symlink(os.DevNull, device); err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{dir, os.DevNull, device, filepath.Join(dir, "missing", "file")} {
		err := safeio.WriteFile(t.Context(), file, 0o600, func(*os.File) error {
			t.Errorf("%s: the content was made", file)
			return nil
		})
		if !problem.IsInvalid(err) || len(problem.Hints(err)) == 0 {
			t.Errorf("%s: got %v", file, err)
		}
	}
}
