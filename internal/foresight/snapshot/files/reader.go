package files

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/foresight/snapshot"
	"github.com/pmk-sched/pmk-sched/internal/foresight/snapshot/archive"
	"github.com/pmk-sched/pmk-sched/internal/foresight/snapshot/openb"
)

// reader is one run of Read.
type reader struct {
	sink   Sink
	kinds  []*snapshot.Kind
	o      Options
	seen   map[string]*snapshot.Resource
	result *Result
	source source
	// custom are custom resources, and definitions the CustomResourceDefinitions, which may follow.
	custom, definitions []map[string]any
}

// stream reads a file in any format.
func (r *reader) stream(text *bufio.Reader, start []byte) (err error) {
	switch {
	case bytes.HasPrefix(start, gzipMagic()):
		err = r.archive(text)
	case openb.IsNodes(start):
		r.result.Notes = append(r.result.Notes, openb.NodesNote)
		err = openb.Nodes(text, r.add)
	case openb.IsPods(start) && r.o.Changed != nil:
		r.result.Notes = append(r.result.Notes, openb.TimesNote)
		err = openb.Changes(text, r.add, r.changed)
	case openb.IsPods(start):
		r.result.Notes = append(r.result.Notes, openb.PodsNote)
		err = openb.Pods(text, r.add)
	default:
		err = r.source.stream(text, start)
	}
	return err
}

// trace reads a CSV file if it is a list from a trace.
func (r *reader) trace(text *bufio.Reader, start []byte) error {
	if !openb.IsNodes(start) && !openb.IsPods(start) {
		return nil
	}
	return r.stream(text, start)
}

// archive reads another snapshot, with the kinds that it was made with.
func (r *reader) archive(in io.Reader) error {
	snap, err := archive.NewReader(in, archive.Limits{})
	if err != nil {
		return err
	}
	r.result.Headers = append(r.result.Headers, snap.Header())
	return snap.Each(r.store)
}

// isRead reports whether objects of a type are kept: those that schedulers read, and custom
// resources.
func (r *reader) isRead(apiVersion, name string) bool {
	kind, _ := snapshot.Find(r.kinds, apiVersion, name)
	return kind != nil || snapshot.IsExternal(apiVersion)
}

// add adds an object that a file has, if a scheduler reads it.
func (r *reader) add(o map[string]any) error {
	apiVersion, _ := o[apiVersionField].(string)
	name, _ := o[kindField].(string)
	kind, version := snapshot.Find(r.kinds, apiVersion, name)
	switch {
	case kind == nil && name == snapshot.DefinitionKind:
		r.definitions = append(r.definitions, o)
		return nil
	case kind == nil && snapshot.IsExternal(apiVersion) && nameOf(o) != name: // it has a name
		r.custom = append(r.custom, o)
		return nil
	case kind == nil:
		if slices.ContainsFunc(r.kinds, func(k *snapshot.Kind) bool { return k.Name == name }) {
			name += " of " + apiVersion
		}
		r.result.Ignored[name]++
		return nil
	}
	if metadata, ok := o["metadata"].(map[string]any); ok && kind.Namespaced && metadata["namespace"] == nil {
		metadata["namespace"] = "default" // as kubectl does
	}
	return r.store(kind, version, kind.Strip(o))
}

// changed reports a pod in a trace.
func (r *reader) changed(at time.Duration, gone bool, o map[string]any) error {
	kind, version := snapshot.FindOf(r.kinds, o)
	if err := r.see(kind, version); err != nil {
		return err
	}
	text, err := snapshot.Encode(kind.Strip(o))
	if err != nil {
		return fmt.Errorf("store a %s: %w", kind.Name, err)
	}
	return r.o.Changed(at, gone, text)
}

// store adds an object without the fields that schedulers do not read.
func (r *reader) store(kind *snapshot.Kind, version string, o map[string]any) error {
	if err := r.see(kind, version); err != nil {
		return err
	}
	key, err := kind.Key(o)
	if err != nil {
		return problem.Invalidf("", "%w", err)
	}
	if kind.Name == "Pod" && r.o.Pods != nil {
		r.o.Pods.Count(o)
	}
	text, err := snapshot.Encode(o)
	if err != nil {
		return fmt.Errorf("store %s %s: %w", kind.Name, key, err)
	}
	return r.sink.Add(kind.GroupResource(), key, text)
}

// see remembers a kind's version.
func (r *reader) see(kind *snapshot.Kind, version string) error {
	resource := kind.GroupResource()
	if r.seen[resource] == nil {
		r.seen[resource] = &snapshot.Resource{
			Group: kind.Group, Version: version, Resource: kind.Resource, Kind: kind.Name, Namespaced: kind.Namespaced,
			Custom: kind.Custom,
		}
		known := func(k *snapshot.Kind) bool { return k.GroupResource() == resource }
		if kind.Custom && !slices.ContainsFunc(r.kinds, known) {
			r.kinds = append(r.kinds, kind)
		}
	}
	if first := r.seen[resource].Version; first != version {
		return problem.Invalidf("read the objects from one cluster", "%s of two versions: %s and %s", resource, first,
			version)
	}
	return nil
}

// addCustom adds the custom resources that are kept.
func (r *reader) addCustom() error {
	kinds := map[string]*snapshot.Kind{}
	for _, o := range r.custom {
		kind, _ := snapshot.ExternalKind(o, r.definitions)
		if known := kinds[kind.GroupResource()]; known != nil {
			kind.Namespaced = kind.Namespaced || known.Namespaced
		}
		kinds[kind.GroupResource()] = kind
	}
	for _, o := range r.custom {
		kind, version := snapshot.ExternalKind(o, r.definitions)
		resource := kind.GroupResource()
		if !r.o.Custom && !slices.Contains(r.o.Resources, resource) {
			r.result.Ignored[kind.Name]++
			r.result.Unnamed[resource] = true
			continue
		}
		kind = kinds[resource]
		if metadata, ok := o[metadataField].(map[string]any); ok && kind.Namespaced && metadata["namespace"] == nil {
			metadata["namespace"] = "default" // as kubectl does
		}
		if err := r.store(kind, version, kind.Strip(o)); err != nil {
			return err
		}
	}
	return nil
}
