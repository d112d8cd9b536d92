package policytest

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"
)

func TestFileStateDependsOnTheFilesThatAreWatched(t *testing.T) {
	write := func(t *testing.T, path, text string) {
		t.Helper()
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	cases := map[string]struct {
		change func(t *testing.T, dir string)
		want   bool
	}{
		"nothing": {func(*testing.T, string) {}, false},
		"a file": {func(t *testing.T, dir string) { write(t, filepath.Join(dir, "plugin", "a.go"), "changed") },
			true},
		"a new file": {func(t *testing.T, dir string) { write(t, filepath.Join(dir, "plugin", "sub", "b.go"), "") },
			true},
		"a hidden file": {func(t *testing.T, dir string) { write(t, filepath.Join(dir, "plugin", ".a.go.swp"), "") },
			false},
		"a hidden directory": {func(t *testing.T,
			dir string) {
			write(t, filepath.Join(dir, "plugin", ".git", "index"), "")
		}, false},
		"another directory":   {func(t *testing.T, dir string) { write(t, filepath.Join(dir, "other", "a.go"), "") }, false},
		"a file that appears": {func(t *testing.T, dir string) { write(t, filepath.Join(dir, "scenario.yaml"), "") }, true},
		"the time": {func(t *testing.T, dir string) {
			if err := os.Chtimes(filepath.Join(dir, "plugin", "a.go"), time.Time{}, time.Unix(1, 0)); err != nil {
				t.Fatal(err)
			}
		}, true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			write(t, filepath.Join(dir, "plugin", "a.go"), "")
			paths := []string{filepath.Join(dir, "plugin"), filepath.Join(dir, "scenario.yaml")}
			before, err := ReadFileState(paths)
			if err != nil {
				t.Fatal(err)
			}
			tc.change(t, dir)
			after, err := ReadFileState(paths)
			if err != nil || (after != before) != tc.want {
				t.Errorf("got %v and %v, %v", before, after, err)
			}
		})
	}
}

func TestAwaitChangeReturnsAfterAChangeAndWithItsContext(t *testing.T) {
	file := filepath.Join(t.TempDir(), "a.go")
	last, err := ReadFileState([]string{file})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if err := AwaitChange(ctx, []string{file}, last); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("without a change: %v", err)
	}
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := AwaitChange(t.Context(), []string{file}, last); err != nil {
		t.Errorf("after a change: %v", err)
	}
}
