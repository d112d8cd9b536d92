package session

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/base/tempdir"
	"github.com/pmk-sched/pmk-sched/internal/cluster/inspect"
	"github.com/pmk-sched/pmk-sched/internal/foresight/snapshot"
	"github.com/pmk-sched/pmk-sched/internal/foresight/snapshot/archive"
	"github.com/pmk-sched/pmk-sched/internal/foresight/snapshot/collect"
	"github.com/pmk-sched/pmk-sched/internal/foresight/snapshot/diskqueue"
	"github.com/pmk-sched/pmk-sched/internal/foresight/snapshot/files"
)

// SnapshotRequest describes the content of a snapshot.
type SnapshotRequest struct {
	// From are files and directories to read instead of the cluster; Stdin is read for "-".
	From  []string
	Stdin io.Reader
	// Resources are additional kinds that plugins read: PLURAL.GROUP.
	Resources []string
	// Anonymize replaces names.
	Anonymize bool
	// Version of pmk-sched.
	Version string
}

// Snapshot writes the objects that a scheduler reads to a file, which is replaced when the snapshot
// is complete. Only its owner may read it.
func (s *Session) Snapshot(ctx context.Context, r SnapshotRequest, file string) (header *snapshot.Header, err error) {
	// Before anything is read, so that a wrong path fails at once.
	f, err := os.CreateTemp(filepath.Dir(file), "."+filepath.Base(file)+".*")
	if err != nil {
		return nil, problem.Invalidf("", "write snapshot to %s: %w", file, err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, f.Close(), os.Remove(f.Name()))
		}
	}()
	err = s.takeSnapshot(ctx, r, func(h *snapshot.Header, objects *diskqueue.Spool) error {
		header = h
		return s.Step("write "+file, func() error {
			if err := archive.Write(f, h, objects); err != nil {
				return err
			}
			return errors.Join(f.Sync(), os.Rename(f.Name(), file))
		})
	})
	if err != nil {
		return nil, err
	}
	return header, f.Close()
}

// takeSnapshot calls use with the objects that a scheduler reads. The objects are on disk until use
// returns.
func (s *Session) takeSnapshot(ctx context.Context, r SnapshotRequest, use func(*snapshot.Header, *diskqueue.Spool) error) (err error) {
	dir, remove, err := tempdir.Make("snapshot")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, remove()) }()
	objects, err := diskqueue.New(dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, objects.Close()) }()
	header := &snapshot.Header{Format: snapshot.Format, Version: snapshot.Version, CreatedBy: r.Version, Time: time.Now().UTC().Truncate(time.Second)}
	kinds, err := SnapshotKinds(r.Resources)
	if err != nil {
		return err
	}
	if len(r.From) > 0 {
		err = s.readFiles(ctx, r, kinds, header, objects)
	} else {
		err = s.readCluster(ctx, kinds, header, objects)
	}
	if err != nil {
		return err
	}
	sortObjects(header, objects)
	if !r.Anonymize || header.Anonymized {
		return use(header, objects)
	}
	renamed, err := diskqueue.New(dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, renamed.Close()) }()
	if err := s.Step("replace names", func() error { return anonymize(ctx, kinds, header, objects, renamed) }); err != nil {
		return err
	}
	sortObjects(header, renamed) // their keys have changed
	return use(header, renamed)
}

// sortObjects orders the objects, and completes the header with their numbers.
func sortObjects(h *snapshot.Header, objects *diskqueue.Spool) {
	for i := range h.Resources {
		r := &h.Resources[i]
		r.Objects, r.Bytes = objects.Sort(groupResource(r))
	}
}

func groupResource(r *snapshot.Resource) string {
	k := snapshot.Kind{Group: r.Group, Resource: r.Resource}
	return k.GroupResource()
}

// SnapshotKinds returns the kinds that every scheduler reads, and the given kinds that plugins
// read.
func SnapshotKinds(resources []string) ([]*snapshot.Kind, error) {
	kinds := snapshot.Kinds()
	for _, resource := range resources {
		kind, err := snapshot.CustomKind(resource)
		if err != nil {
			return nil, problem.Invalidf("", "--resource: %w", err)
		}
		kinds = append(kinds, kind)
	}
	return kinds, nil
}

// readCluster reads the objects of the cluster.
func (s *Session) readCluster(ctx context.Context, kinds []*snapshot.Kind, h *snapshot.Header, objects *diskqueue.Spool) error {
	cfg, err := s.Connect()
	if err != nil {
		return err
	}
	release, err := inspect.ServerRelease(cfg)
	if err != nil {
		return err
	}
	read, err := collect.Cluster(ctx, cfg, kinds, objects, collect.Options{
		Pods: &h.Pods, Log: s.Log, OnKind: func(resource string) func(error) { return s.OnStep("read " + resource) },
	})
	if err != nil {
		return err
	}
	h.Source, h.Release = snapshot.FromCluster, release.String()
	h.ResourceVersion, h.Consistent = read.ResourceVersion, read.Consistent
	h.Resources, h.Skipped = read.Resources, read.Skipped
	for _, skipped := range h.Skipped {
		if skipped.Reason != snapshot.NotServed {
			s.Warn(fmt.Sprintf("the snapshot has no %s: %s", skipped.Resource, skipped.Reason))
		}
	}
	if !h.Consistent {
		s.Warn("the objects are not of one resource version: the API server had compacted it; the header of the snapshot has the version of each kind")
	}
	return nil
}

// readFiles reads the objects of files.
func (s *Session) readFiles(ctx context.Context, r SnapshotRequest, kinds []*snapshot.Kind, h *snapshot.Header, objects *diskqueue.Spool) error {
	if len(r.Resources) > 0 {
		return problem.Invalidf("read these from the cluster", "--resource cannot be used with --from")
	}
	var read *files.Result
	err := s.Step("read objects", func() (err error) {
		read, err = files.Read(ctx, kinds, objects, files.Options{Paths: r.From, Stdin: r.Stdin, Pods: &h.Pods})
		return err
	})
	if err != nil {
		return err
	}
	h.Source, h.Resources, h.Notes = snapshot.FromFiles, read.Resources, read.Notes
	for _, other := range read.Headers {
		h.Anonymized = h.Anonymized || other.Anonymized
		h.Release, h.Skipped = other.Release, append(h.Skipped, other.Skipped...)
		if len(r.From) == 1 {
			h.Source, h.ResourceVersion, h.Consistent = other.Source, other.ResourceVersion, other.Consistent
			h.Notes = append(h.Notes, other.Notes...)
		}
	}
	for _, kind := range slices.Sorted(maps.Keys(read.Ignored)) {
		s.Note(fmt.Sprintf("%d objects of kind %s are ignored: no scheduler reads them", read.Ignored[kind], kind))
	}
	return nil
}

// anonymize replaces the names in all objects, which are in order. Pods come first: they name the claims of their volumes.
func anonymize(ctx context.Context, kinds []*snapshot.Kind, h *snapshot.Header, from, to *diskqueue.Spool) error {
	key, err := anonymizationKey(h, from)
	if err != nil {
		return err
	}
	a := snapshot.NewAnonymizer(key)
	byName := map[string]*snapshot.Kind{}
	for _, kind := range kinds {
		byName[kind.GroupResource()] = kind
	}
	for _, podsPass := range []bool{true, false} {
		for i := range h.Resources {
			if r := &h.Resources[i]; (r.Kind == "Pod") == podsPass {
				if err := anonymizeAll(ctx, a, byName[groupResource(r)], groupResource(r), from, to); err != nil {
					return err
				}
			}
		}
	}
	h.Anonymized = true
	return nil
}

// anonymizeAll replaces the names in the objects of a resource. kind is nil if it is not known.
func anonymizeAll(ctx context.Context, a *snapshot.Anonymizer, kind *snapshot.Kind, resource string, from, to *diskqueue.Spool) error {
	if kind == nil {
		return problem.Invalidf("take the snapshot again without --resource", "replace names in %s: it is not known which of their fields are names", resource)
	}
	return from.Each(resource, func(_ string, text []byte) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		return anonymizeOne(a, kind, text, to)
	})
}

func anonymizeOne(a *snapshot.Anonymizer, kind *snapshot.Kind, text []byte, to *diskqueue.Spool) error {
	object, err := snapshot.Decode(text)
	if err != nil {
		return fmt.Errorf("read a stored %s: %w", kind.Name, err)
	}
	if object, err = a.Object(kind, object); err != nil {
		return problem.Invalidf("without --resource, or without --anonymize", "%w", err)
	}
	key, err := kind.Key(object)
	if err != nil {
		return err
	}
	if text, err = snapshot.Encode(object); err != nil {
		return fmt.Errorf("store a %s: %w", kind.Name, err)
	}
	return to.Add(kind.GroupResource(), key, text)
}

// anonymizationKey returns the UID of the namespace kube-system, so that snapshots of one cluster have the same names, or, if there is none, a
// hash of all objects. Neither is in a snapshot whose names are replaced.
func anonymizationKey(h *snapshot.Header, objects *diskqueue.Spool) ([]byte, error) {
	var key []byte
	hash := sha256.New()
	for i := range h.Resources {
		resource := groupResource(&h.Resources[i])
		err := objects.Each(resource, func(name string, text []byte) error {
			hash.Write(text)
			if resource != "namespaces" || name != metav1.NamespaceSystem {
				return nil
			}
			object, err := snapshot.Decode(text)
			if err != nil {
				return fmt.Errorf("read a stored Namespace: %w", err)
			}
			metadata, _ := object["metadata"].(map[string]any)
			uid, _ := metadata["uid"].(string)
			key = []byte(uid)
			return nil
		})
		if err != nil || len(key) > 0 {
			return key, err
		}
	}
	return hash.Sum(nil), nil
}
