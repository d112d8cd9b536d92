package capture_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pmk-sched/pmk-sched/internal/foresight/snapshot/capture"
)

func newSpool(t *testing.T) (s *capture.Spool, dir string) {
	t.Helper()
	dir = t.TempDir()
	s, err := capture.NewSpool(dir)
	if err != nil {
		t.Fatal(err)
	}
	return s, dir
}

func add(t *testing.T, s *capture.Spool, resource string, objects ...string) {
	t.Helper()
	for _, object := range objects {
		key, _, _ := bytes.Cut([]byte(object), []byte("="))
		if err := s.Add(resource, string(key), []byte(object)); err != nil {
			t.Fatal(err)
		}
	}
}

func all(t *testing.T, s *capture.Spool, resource string) (objects []string) {
	t.Helper()
	if err := s.Each(resource, func(_ string, object []byte) error {
		objects = append(objects, string(object))
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return objects
}

func TestObjectsAreOrderedByTheBytesOfTheirKeys(t *testing.T) {
	s, dir := newSpool(t)
	add(t, s, "pods", "ns/b=1", "ns-a/x=2", "ns/a=3")
	add(t, s, "nodes", "z=1", "a=2")
	add(t, s, "pods", "a/a=4", "ns/b=5") // replaces the first
	if count, size := s.Sort("pods"); count != 4 || size != int64(len("a/a=4ns-a/x=2ns/a=3ns/b=5")) {
		t.Errorf("%d objects of %d bytes", count, size)
	}
	s.Sort("nodes")
	want := []string{"a/a=4", "ns-a/x=2", "ns/a=3", "ns/b=5"}
	if diff := cmp.Diff(want, all(t, s, "pods")); diff != "" {
		t.Errorf("pods (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"a=2", "z=1"}, all(t, s, "nodes")); diff != "" {
		t.Errorf("nodes (-want +got):\n%s", diff)
	}
	if count, size := s.Sort("jobs"); count != 0 || size != 0 || all(t, s, "jobs") != nil {
		t.Error("there are jobs")
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("%v is left, %v", left, err)
	}
}

func TestTruncatedObjectsAreGone(t *testing.T) {
	s, _ := newSpool(t)
	defer s.Close()
	add(t, s, "pods", "a=1")
	begin := s.Count("pods")
	add(t, s, "pods", "b=2", "c=3")
	s.Truncate("pods", begin)
	add(t, s, "pods", "d=4")
	s.Sort("pods")
	if diff := cmp.Diff([]string{"a=1", "d=4"}, all(t, s, "pods")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// Objects that are longer than the buffers, and that are read while others are added.
func TestLongObjectsAreReadBack(t *testing.T) {
	s, _ := newSpool(t)
	defer s.Close()
	var want []string
	for i := range 5 {
		object := fmt.Sprintf("%d=%s", i, bytes.Repeat([]byte{'a' + byte(i)}, 300<<10))
		want = append(want, object)
		add(t, s, "pods", object)
		s.Sort("pods")
		if diff := cmp.Diff(want, all(t, s, "pods")); diff != "" {
			t.Fatal("an object differs")
		}
	}
}

func TestEachEndsWithTheErrorOfItsCaller(t *testing.T) {
	s, _ := newSpool(t)
	defer s.Close()
	add(t, s, "pods", "a=1", "b=2")
	stop, calls := errors.New("stop"), 0
	err := s.Each("pods", func(string, []byte) error { calls++; return stop })
	if !errors.Is(err, stop) || calls != 1 {
		t.Errorf("%d calls, %v", calls, err)
	}
}
