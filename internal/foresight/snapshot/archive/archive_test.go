package archive_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/foresight/snapshot"
	"github.com/pmk-sched/pmk-sched/internal/foresight/snapshot/archive"
)

// objects are the objects of a snapshot, by resource, each in one line.
type objects map[string][]string

func (o objects) Each(resource string, do func(key string, object []byte) error) error {
	for _, object := range o[resource] {
		if err := do("", []byte(object)); err != nil {
			return err
		}
	}
	return nil
}

const (
	nodeA = `{"apiVersion":"v1","kind":"Node","metadata":{"name":"a"},"status":{"allocatable":{"cpu":"1"}}}`
	nodeB = `{"apiVersion":"v1","kind":"Node","metadata":{"name":"b"}}`
	pod   = `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p","namespace":"n"},"spec":{"priority":9007199254740993}}`
	set   = `{"apiVersion":"apps/v1","kind":"ReplicaSet","metadata":{"name":"r","namespace":"n"}}`
)

// sample returns a snapshot with two nodes, a pod and a ReplicaSet.
func sample() (*snapshot.Header, objects) {
	of := func(group, resource, kind string, namespaced bool, list ...string) snapshot.Resource {
		return snapshot.Resource{
			Group: group, Version: "v1", Resource: resource, Kind: kind, Namespaced: namespaced,
			Objects: len(list), Bytes: int64(len(strings.Join(list, ""))),
		}
	}
	return &snapshot.Header{
		Format: snapshot.Format, Version: snapshot.Version, CreatedBy: "test", Time: time.Unix(1700000000, 0).UTC(),
		Source: snapshot.FromCluster, Release: "v1.24.3", ResourceVersion: "7", Consistent: true,
		Resources: []snapshot.Resource{
			of("", "nodes", "Node", false, nodeA, nodeB), of("", "pods", "Pod", true, pod), of("apps", "replicasets",
				"ReplicaSet", true, set),
		},
	}, objects{"nodes": {nodeA, nodeB}, "pods": {pod}, "replicasets.apps": {set}}
}

func write(t testing.TB, h *snapshot.Header, o objects) []byte {
	t.Helper()
	var out bytes.Buffer
	if err := archive.Write(&out, h, o); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// read reads all objects of an archive, as JSON.
func read(file []byte, limits archive.Limits) (*snapshot.Header, []string, error) {
	r, err := archive.NewReader(bytes.NewReader(file), limits)
	if err != nil {
		return nil, nil, err
	}
	var all []string
	err = r.Each(func(_ *snapshot.Kind, _ string, object map[string]any) error {
		text, err := snapshot.Encode(object)
		all = append(all, string(text))
		return err
	})
	h := r.Header()
	return &h, all, err
}

func TestWhatIsWrittenIsRead(t *testing.T) {
	want, o := sample()
	got, all, err := read(write(t, want, o), archive.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("header (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{nodeA, nodeB, pod, set}, all); diff != "" {
		t.Errorf("objects (-want +got):\n%s", diff)
	}
}

// members returns the entries of an archive with everything that tar stores of them.
func members(t *testing.T, file []byte) map[string]string {
	t.Helper()
	compressed, err := gzip.NewReader(bytes.NewReader(file))
	if err != nil {
		t.Fatal(err)
	}
	in := tar.NewReader(compressed)
	all := map[string]string{}
	for {
		h, err := in.Next()
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(in)
		if err != nil {
			t.Fatal(err)
		}
		all[h.Name] = fmt.Sprintf("%o %s %d:%d %s", h.Mode, h.ModTime.UTC(), h.Uid, h.Gid, text)
	}
}

func TestArchivesOfOneStateDifferInTheHeaderOnly(t *testing.T) {
	h, o := sample()
	first := write(t, h, o)
	if !bytes.Equal(first, write(t, h, o)) {
		t.Error("the same snapshot is written in two ways")
	}
	h.Time, h.CreatedBy, h.ResourceVersion = h.Time.Add(time.Hour), "later", "8"
	one, two := members(t, first), members(t, write(t, h, o))
	if one["header.json"] == two["header.json"] {
		t.Error("the headers do not differ")
	}
	delete(one, "header.json")
	delete(two, "header.json")
	if diff := cmp.Diff(one, two); diff != "" {
		t.Error(diff)
	}
}

// entry is a file of an archive that a test makes.
type entry struct {
	name, text string
	kind       byte
}

func makeArchive(t testing.TB, entries ...entry) []byte {
	t.Helper()
	var out bytes.Buffer
	compressed := gzip.NewWriter(&out)
	w := tar.NewWriter(compressed)
	for _, e := range entries {
		h := &tar.Header{Name: e.name, Typeflag: e.kind, Size: int64(len(e.text)), Mode: 0o644}
		if e.kind == 0 {
			h.Typeflag = tar.TypeReg
		}
		if h.Typeflag != tar.TypeReg {
			h.Linkname, h.Size, e.text = e.text, 0, ""
		}
		if err := w.WriteHeader(h); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(w, e.text); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := compressed.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// header returns the header of the sample after a change, as JSON.
func header(t testing.TB, change func(*snapshot.Header)) string {
	t.Helper()
	h, _ := sample()
	h.Resources = h.Resources[:1]
	if change != nil {
		change(h)
	}
	text, err := json.Marshal(h)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestArchivesThatAreNotSnapshotsAreRefused(t *testing.T) {
	nodes := entry{name: "objects/nodes.v1.jsonl", text: nodeA + "\n" + nodeB + "\n"}
	good := entry{name: "header.json", text: header(t, nil)}
	of := func(change func(*snapshot.Header)) entry { return entry{name: "header.json", text: header(t, change)} }
	lines := func(text string) entry { return entry{name: nodes.name, text: text} }
	cases := map[string]struct {
		file []byte
		want string
	}{
		"not compressed": {[]byte("apiVersion: v1"), "not a gzip file"},
		"empty":          {nil, "not a gzip file"},
		"no header":      {makeArchive(t, nodes), "expected the file header.json"},
		"nothing in it":  {makeArchive(t), "header.json is missing"},
		"header is a link": {makeArchive(t, entry{name: "header.json", kind: tar.TypeSymlink, text: "/etc/passwd"}),
			"expected the file header.json"},
		"header is not JSON": {makeArchive(t, entry{name: "header.json", text: "{"}), "unexpected end"},
		"header is too long": {makeArchive(t, entry{name: "header.json", text: strings.Repeat(" ", 1<<20+1)}),
			"longer than"},
		"another format": {makeArchive(t, of(func(h *snapshot.Header) { h.Format = "x" })), `got "x"`},
		"a newer version": {makeArchive(t, of(func(h *snapshot.Header) { h.Version = 2 })),
			"expected version 1 of the format, got 2"},
		"an unknown kind": {makeArchive(t, of(func(h *snapshot.Header) { h.Resources[0].Kind = "Secret" })),
			"not read by a scheduler"},
		"an unknown version": {makeArchive(t, of(func(h *snapshot.Header) { h.Resources[0].Version = "v9" })),
			"not read by a scheduler"},
		"a path as a resource": {makeArchive(t, of(func(h *snapshot.Header) { h.Resources[0].Resource = "../nodes" })),
			"not read by a scheduler"},
		"secrets": {makeArchive(t,
			of(func(h *snapshot.Header) { h.Resources[0].Resource = "secrets"; h.Resources[0].Custom = true })), "never part"},
		"a path as a custom kind": {makeArchive(t,
			of(func(h *snapshot.Header) { h.Resources[0].Resource = "../a"; h.Resources[0].Custom = true })),
			"invalid resource"},
		"an unknown plural": {makeArchive(t, of(func(h *snapshot.Header) { h.Resources[0].Resource = "node" })),
			"not read by a scheduler"},
		"another scope": {makeArchive(t, of(func(h *snapshot.Header) { h.Resources[0].Namespaced = true })),
			"not read by a scheduler"},
		"an older version": {makeArchive(t, of(func(h *snapshot.Header) { h.Version = 0 })), "expected version 1"},
		"with changes": {makeArchive(t, of(func(h *snapshot.Header) { h.Recording = &snapshot.Recording{} })),
			"the header of a snapshot has not"},
		"a recording without them": {makeArchive(t, of(func(h *snapshot.Header) { h.Format = snapshot.RecordingFormat })),
			"is a recording"},
		"another API group": {makeArchive(t, good,
			lines(strings.Replace(nodeA, `"v1"`, `"apps/v1"`, 1)+"\n")), "expected v1 Node, got apps/v1 Node"},
		"a kind twice": {makeArchive(t,
			of(func(h *snapshot.Header) { h.Resources = append(h.Resources, h.Resources[0]) })), "twice"},
		"objects missing": {makeArchive(t, good), "objects/nodes.v1.jsonl is missing"},
		"another file": {makeArchive(t, good, entry{name: "../../etc/passwd", text: "x"}),
			`got "../../etc/passwd"`},
		"a link": {makeArchive(t, good, entry{name: nodes.name, kind: tar.TypeSymlink, text: "/etc/passwd"}),
			"expected the file objects/nodes.v1.jsonl"},
		"a file too many": {makeArchive(t, good, nodes, entry{name: "x", text: "y"}), `unexpected file "x"`},
		"fewer objects":   {makeArchive(t, good, lines(nodeA+"\n")), "has 1 objects, the header 2"},
		"more objects": {makeArchive(t, good,
			lines(nodeA+"\n"+nodeB+"\n"+strings.ReplaceAll(nodeB, `"b"`, `"c"`)+"\n")), "has 3 objects"},
		"not in order":    {makeArchive(t, good, lines(nodeB+"\n"+nodeA+"\n")), "a comes after b"},
		"an object twice": {makeArchive(t, good, lines(nodeA+"\n"+nodeA+"\n")), "a comes after a"},
		"another kind":    {makeArchive(t, good, lines(pod+"\n")), "expected v1 Node, got v1 Pod"},
		"no name": {makeArchive(t, good, lines(`{"apiVersion":"v1","kind":"Node"}`+"\n")),
			"has no metadata.name"},
		"null":                  {makeArchive(t, good, lines("null\n")), "got null"},
		"an empty line":         {makeArchive(t, good, lines("\n")), "EOF"},
		"two objects in a line": {makeArchive(t, good, lines(nodeA+nodeB+"\n")), "more than one object"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, _, err := read(tc.file, archive.Limits{})
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Fatalf("got %v, want %q", err, tc.want)
			}
			if !problem.IsInvalid(err) || len(problem.Hints(err)) == 0 {
				t.Error("the error does not say that the file is wrong, or has no hint")
			}
		})
	}
}

func TestLimits(t *testing.T) {
	h, o := sample()
	file := write(t, h, o)
	long := makeArchive(t, entry{name: "header.json",
		text: header(t, func(h *snapshot.Header) { h.Resources[0].Objects = 1 })},
		entry{name: "objects/nodes.v1.jsonl",
			text: strings.Replace(nodeA, `"a"`, `"`+strings.Repeat("a", 4<<20)+`"`, 1) + "\n"})
	cases := map[string]struct {
		file   []byte
		limits archive.Limits
		want   string
	}{
		"bytes":     {file, archive.Limits{Bytes: 3000}, "more bytes than the limit"},
		"objects":   {file, archive.Limits{Objects: 3}, "more than 3 objects"},
		"an object": {file, archive.Limits{ObjectBytes: 90}, "objects/nodes.v1.jsonl: line 1: bufio.Scanner: token too"},
		"defaults":  {long, archive.Limits{}, "token too long"},
		"a half":    {file[:len(file)/2], archive.Limits{}, "unexpected EOF"},
		"a byte":    {file[:len(file)-1], archive.Limits{}, "unexpected EOF"},
		"checksum":  {slices.Concat(file[:len(file)-8], []byte("12345678")), archive.Limits{}, "invalid checksum"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if _, _, err := read(tc.file, tc.limits); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want %q", err, tc.want)
			}
		})
	}
}

func TestFieldsThatNoSchedulerReadsAreNotReturned(t *testing.T) {
	node := `{"apiVersion":"v1","kind":"Node","metadata":{"annotations":{"a":"b"},"name":"a"},"spec":{"providerID":"x"}}`
	file := makeArchive(t, entry{name: "header.json",
		text: header(t, func(h *snapshot.Header) { h.Resources[0].Objects = 1 })},
		entry{name: "objects/nodes.v1.jsonl", text: node + "\n"})
	_, all, err := read(file, archive.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{`{"apiVersion":"v1","kind":"Node","metadata":{"name":"a"},"spec":{}}`}
	if diff := cmp.Diff(want, all); diff != "" {
		t.Error(diff)
	}
}

// FuzzRead searches files that crash the reader.
func FuzzRead(f *testing.F) {
	h, o := sample()
	f.Add(write(f, h, o))
	f.Add([]byte{0x1f, 0x8b})
	f.Fuzz(func(_ *testing.T, file []byte) {
		_, _, _ = read(file, archive.Limits{Bytes: 1 << 20}) // an error is as good as objects
	})
}

// FuzzContent searches for headers and objects that crash the reader, or that the reader accepts
// but rejects after they are written again.
func FuzzContent(f *testing.F) {
	f.Add(header(f, nil), "objects/nodes.v1.jsonl", nodeA+"\n"+nodeB+"\n")
	f.Add(header(f, func(h *snapshot.Header) { h.Resources[0].Custom, h.Resources[0].Group = true, "example.com" }),
		"objects/nodes.v1.example.com.jsonl", nodeA+"\n")
	f.Add("{}", "../x", "null\n")
	f.Fuzz(func(t *testing.T, head, name, lines string) {
		var file bytes.Buffer
		compressed := gzip.NewWriter(&file)
		w := tar.NewWriter(compressed)
		for _, e := range []entry{{name: "header.json", text: head}, {name: name, text: lines}} {
			if w.WriteHeader(&tar.Header{Name: e.name, Typeflag: tar.TypeReg, Size: int64(len(e.text)), Mode: 0o644}) != nil {
				return // tar cannot store that name
			}
			if _, err := io.WriteString(w, e.text); err != nil {
				t.Fatal(err)
			}
		}
		if err := errors.Join(w.Close(), compressed.Close()); err != nil {
			t.Fatal(err)
		}
		h, all, err := read(file.Bytes(), archive.Limits{})
		if err != nil || len(h.Resources) != 1 {
			return
		}
		r := &h.Resources[0]
		r.Bytes = int64(len(strings.Join(all, "")))
		kind := snapshot.Kind{Group: r.Group, Resource: r.Resource}
		if _, again, err := read(write(t, h, objects{kind.GroupResource(): all}), archive.Limits{}); err != nil ||
			!slices.Equal(all, again) {
			t.Fatalf("%v: %q, %q", err, all, again)
		}
	})
}
