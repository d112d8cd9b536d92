package archive_test

import (
	"bytes"
	"compress/gzip"
	"crypto/rand"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/foresight/snapshot"
	"github.com/pmk-sched/pmk-sched/internal/foresight/snapshot/archive"
)

// What is as large as its limit is read.
func TestLimitsCanBeReached(t *testing.T) {
	h, o := sample()
	file := write(t, h, o)
	compressed, err := gzip.NewReader(bytes.NewReader(file))
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(compressed)
	if err != nil {
		t.Fatal(err)
	}
	for name, limits := range map[string]archive.Limits{
		"objects": {Objects: 4}, "bytes": {Bytes: int64(len(text)) + 1}, "an object": {ObjectBytes: len(pod) + 2},
	} {
		if _, all, err := read(file, limits); err != nil || len(all) != 4 {
			t.Errorf("%s: %d objects, %v", name, len(all), err)
		}
	}
	long := header(t, func(h *snapshot.Header) { h.Resources = nil })
	long += strings.Repeat(" ", 1<<20-len(long))
	_, all, err := read(makeArchive(t, entry{name: "header.json", text: long}), archive.Limits{})
	if err != nil || len(all) != 0 {
		t.Errorf("the longest header: %d objects, %v", len(all), err)
	}
}

// Custom kinds have the name and the scope of the header.
func TestCustomObjectsAreRead(t *testing.T) {
	const object = `{"apiVersion":"example.com/v1","kind":"Quota","metadata":{"name":"a","namespace":"n"},"spec":{"a":1}}`
	of := func(namespaced bool) []byte {
		return makeArchive(t, entry{name: "header.json", text: header(t, func(h *snapshot.Header) {
			h.Resources[0] = snapshot.Resource{Group: "example.com", Version: "v1", Resource: "quotas", Kind: "Quota",
				Namespaced: namespaced, Custom: true, Objects: 1}
		})}, entry{name: "objects/quotas.v1.example.com.jsonl", text: object + "\n"})
	}
	for _, namespaced := range []bool{false, true} {
		r, err := archive.NewReader(bytes.NewReader(of(namespaced)), archive.Limits{})
		if err != nil {
			t.Fatal(err)
		}
		err = r.Each(func(kind *snapshot.Kind, version string, o map[string]any) error {
			text, err := snapshot.Encode(o)
			if string(text) != object || version != "v1" || kind.Name != "Quota" || kind.Namespaced != namespaced ||
				!kind.Custom {
				t.Errorf("%s %+v: %s", version, kind, text)
			}
			return err
		})
		if err != nil {
			t.Error(err)
		}
	}
}

// An error of who gets the objects is not one of the file.
func TestReadingEndsWithTheFirstError(t *testing.T) {
	h, o := sample()
	r, err := archive.NewReader(bytes.NewReader(write(t, h, o)), archive.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	stop, seen := errors.New("no space"), 0
	err = r.Each(func(*snapshot.Kind, string, map[string]any) error {
		if seen++; seen == 2 {
			return stop
		}
		return nil
	})
	if !errors.Is(err, stop) || problem.IsInvalid(err) || seen != 2 {
		t.Errorf("%d objects, %v", seen, err)
	}
}

// full is a file on a disk with room for some bytes.
type full struct{ left int }

func (f *full) Write(p []byte) (int, error) {
	if f.left -= len(p); f.left < 0 {
		return 0, errors.New("no space")
	}
	return len(p), nil
}

// failing are objects that cannot be read, after the first one.
type failing struct{ objects }

func (f failing) Each(resource string, do func(key string, object []byte) error) error {
	if err := f.objects.Each(resource, do); err != nil {
		return err
	}
	return errors.New("no such file")
}

func TestASnapshotThatCannotBeWrittenIsAnError(t *testing.T) {
	h, o := sample()
	for i := range o["pods"] { // random text is not compressed
		o["pods"][i] = strings.Replace(pod, `"p"`, `"`+rand.Text()+`"`, 1)
		h.Resources[1].Bytes = int64(len(o["pods"][i]))
	}
	whole := len(write(t, h, o))
	for room := 0; room < whole; room += 50 {
		if err := archive.Write(&full{room}, h, o); err == nil || !strings.Contains(err.Error(), "no space") {
			t.Errorf("room for %d of %d bytes: %v", room, whole, err)
		}
	}
	for name, tc := range map[string]struct {
		change func(h *snapshot.Header, o objects) archive.Objects
		want   string
	}{
		"objects that cannot be read": {func(_ *snapshot.Header, o objects) archive.Objects { return failing{o} },
			"write objects/nodes.v1.jsonl of the snapshot: no such file"},
		"too few bytes": {func(h *snapshot.Header, o objects) archive.Objects { h.Resources[2].Bytes--; return o },
			"write objects/replicasets.v1.apps.jsonl of the snapshot: "},
		"too many bytes": {func(h *snapshot.Header, o objects) archive.Objects { h.Resources[0].Bytes++; return o },
			"write objects/pods.v1.jsonl of the snapshot: "},
		"too many bytes at the end": {
			func(h *snapshot.Header, o objects) archive.Objects { h.Resources[2].Bytes++; return o }, "write snapshot: "},
	} {
		h, o := sample()
		if err := archive.Write(io.Discard, h, tc.change(h, o)); err == nil || !strings.HasPrefix(err.Error(), tc.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
