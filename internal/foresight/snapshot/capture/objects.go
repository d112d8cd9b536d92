package capture

import (
	"context"
	"errors"
	"io"
	"maps"
	"os"
	"slices"

	"k8s.io/client-go/rest"

	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/cluster/session"
	"github.com/pmk-sched/pmk-sched/internal/foresight/snapshot"
	"github.com/pmk-sched/pmk-sched/internal/foresight/snapshot/archive"
	"github.com/pmk-sched/pmk-sched/internal/foresight/snapshot/files"
)

// Objects are a snapshot's objects, in a file, in memory or in temporary files.
type Objects interface {
	// Each calls do with each object, in the order of [snapshot.Kinds].
	Each(do func(kind *snapshot.Kind, version string, object map[string]any) error) error
}

// Snapshot is an open snapshot. Close it.
type Snapshot struct {
	Header *snapshot.Header
	Objects
	close func() error // nil: nothing to close
}

// Open opens a snapshot from the request's files, or from the cluster if there are none. A single
// snapshot is read from its file, everything else is kept in temporary files.
func Open(ctx context.Context, s *session.Session, r Request) (*Snapshot, error) {
	if len(r.From) == 1 && files.IsArchive(r.From[0]) {
		return OpenFile(r.From[0])
	}
	r.inPlace = true
	objects, err := take(ctx, s, r, nil)
	if err != nil {
		return nil, err
	}
	return &Snapshot{objects.header, objects, objects.Close}, nil
}

// OpenFile opens the snapshot in a file that [Write] wrote, which need not be closed.
func OpenFile(file string) (*Snapshot, error) {
	var h snapshot.Header
	err := archived(file).read(func(r *archive.Reader) error {
		h = r.Header()
		return nil
	})
	return &Snapshot{Header: &h, Objects: archived(file)}, err
}

// Close removes temporary files.
func (s *Snapshot) Close() error {
	if s.close == nil {
		return nil
	}
	return s.close()
}

// archived is the path to a file with a snapshot.
type archived string

// Each implements [Objects].
func (a archived) Each(do func(kind *snapshot.Kind, version string, object map[string]any) error) error {
	return a.read(func(r *archive.Reader) error { return r.Each(do) })
}

func (a archived) read(use func(*archive.Reader) error) error {
	file, err := os.Open(string(a))
	if err != nil {
		return problem.Invalidf("", "read snapshot: %w", err)
	}
	return readArchive(file, archive.NewReader, use)
}

// readArchive calls use with the reader for a file, which it closes.
func readArchive(
	file *os.File, open func(io.Reader, archive.Limits) (*archive.Reader, error), use func(*archive.Reader) error,
) error {
	defer file.Close()
	r, err := open(file, archive.Limits{})
	if err != nil {
		return err
	}
	return use(r)
}

// spooled are objects in temporary files.
type spooled struct {
	header *snapshot.Header
	spool  *Spool
	remove func() error // removes the directory of the spool; nil: it stays
}

func newSpooled(dir string) (*spooled, error) {
	spool, err := NewSpool(dir)
	return &spooled{header: &snapshot.Header{}, spool: spool}, err
}

// Close removes the objects.
func (o *spooled) Close() error {
	err := o.spool.Close()
	if o.remove != nil {
		err = errors.Join(err, o.remove())
	}
	return err
}

// sort orders the objects, and completes the header with their numbers.
func (o *spooled) sort() {
	for i := range o.header.Resources {
		r := &o.header.Resources[i]
		r.Objects, r.Bytes = o.spool.Sort(r.GroupResource())
	}
	if e := o.header.Recording; e != nil {
		e.Events, e.Bytes = o.spool.Sort(archive.Events)
	}
}

// Each implements [Objects].
func (o *spooled) Each(do func(kind *snapshot.Kind, version string, object map[string]any) error) error {
	kinds := snapshot.Kinds()
	for i := range o.header.Resources {
		r := &o.header.Resources[i]
		kind, version := snapshot.Find(kinds, snapshot.APIVersion(r.Group, r.Version), r.Kind)
		if kind == nil {
			custom, err := snapshot.CustomKind(r.GroupResource())
			if err != nil {
				return err
			}
			kind, version = custom, r.Version
			kind.Name, kind.Namespaced = r.Kind, r.Namespaced
		}
		err := o.spool.Each(r.GroupResource(), func(_ string, text []byte) error {
			object, err := snapshot.Decode(text)
			if err != nil {
				return err
			}
			return do(kind, version, object)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// State are a simulation's objects. Close them.
type State struct {
	*spooled
	original Objects
}

// NewState returns a state without objects, which keeps them in dir. original is the simulation's
// snapshot: its pods determine the pods' creation times, and with them their order.
func NewState(dir string, original Objects) (*State, error) {
	objects, err := newSpooled(dir)
	return &State{objects, original}, err
}

// Read reads the objects from an API server.
func (s *State) Read(ctx context.Context, on *session.Session, cfg *rest.Config) error {
	err := on.Step("read the state", func() error {
		// Plugins may have changed custom resources' status, which no controller evaluates here.
		kinds := slices.DeleteFunc(snapshot.Kinds(), func(k *snapshot.Kind) bool { return k.External })
		read, err := Cluster(ctx, cfg, kinds, s.spool, Options{Log: on.Log})
		if err == nil {
			s.header.Resources = read.Resources
		}
		return err
	})
	s.sort()
	return err
}

// Each implements [Objects]. The custom resources are the original ones.
func (s *State) Each(do func(kind *snapshot.Kind, version string, object map[string]any) error) error {
	original := map[string]map[string]any{} // metadata of pods
	err := s.original.Each(func(kind *snapshot.Kind, version string, o map[string]any) error {
		if kind.External {
			return do(kind, version, o)
		}
		if kind.Name != "Pod" {
			return nil
		}
		key, err := kind.Key(o)
		original[key], _ = o["metadata"].(map[string]any)
		return err
	})
	if err != nil {
		return err
	}
	return s.spooled.Each(func(kind *snapshot.Kind, version string, o map[string]any) error {
		if kind.Name != "Pod" {
			return do(kind, version, o)
		}
		key, err := kind.Key(o)
		if err != nil {
			return err
		}
		if metadata, _ := o["metadata"].(map[string]any); original[key] != nil {
			restore(metadata, original[key])
		}
		return do(kind, version, o)
	})
}

// restore gives a pod the time of the snapshot, and the annotations that [snapshot.Kind.Strip] has
// removed, unless the pod has others.
func restore(metadata, original map[string]any) {
	if original["creationTimestamp"] != nil {
		metadata["creationTimestamp"] = original["creationTimestamp"]
	}
	given, _ := original["annotations"].(map[string]any)
	if len(given) == 0 {
		return
	}
	annotations := maps.Clone(given)
	read, _ := metadata["annotations"].(map[string]any)
	maps.Copy(annotations, read)
	metadata["annotations"] = annotations
}
