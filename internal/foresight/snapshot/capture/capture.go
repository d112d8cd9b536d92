// Package capture takes snapshots from a cluster or from files: it writes them to a file, or
// provides their objects to a simulation. It reads a cluster in pages, at one resource version, and
// keeps the objects on disk, so that memory use does not grow with their size.
package capture

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"time"

	"github.com/pmk-sched/pmk-sched/internal/base/plural"
	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/base/safeio"
	"github.com/pmk-sched/pmk-sched/internal/cluster/inspect"
	"github.com/pmk-sched/pmk-sched/internal/cluster/session"
	"github.com/pmk-sched/pmk-sched/internal/foresight/snapshot"
	"github.com/pmk-sched/pmk-sched/internal/foresight/snapshot/archive"
	"github.com/pmk-sched/pmk-sched/internal/foresight/snapshot/files"
)

// Request describes a snapshot's content.
type Request struct {
	// From are files and directories to read instead of the cluster; Stdin is read for "-".
	From  []string
	Stdin io.Reader
	// Resources are additional kinds that plugins read: PLURAL.GROUP.
	Resources []string
	// Anonymize replaces names.
	Anonymize bool
	// inPlace is set if the objects do not leave this machine: all custom resources in files are kept.
	inPlace bool
	// Version of pmk-sched.
	Version string
}

// Write writes the objects that a scheduler reads to a file, which is replaced when the snapshot is
// complete. Only its owner may read it.
func Write(ctx context.Context, s *session.Session, r Request, file string) (header *snapshot.Header, err error) {
	err = safeio.WriteFile(ctx, file, 0o600, func(f *os.File) error {
		header, err = write(ctx, s, r, nil, file, f)
		return err
	})
	if err != nil {
		return nil, err
	}
	return header, nil
}

// write writes a snapshot, or a recording, to an open file.
func write(
	ctx context.Context, s *session.Session, r Request, rec *recorder, file string, f *os.File,
) (*snapshot.Header, error) {
	objects, err := take(ctx, s, r, rec)
	if err != nil {
		return nil, err
	}
	err = s.Step("write "+file, func() error { return archive.Write(f, objects.header, objects.spool) })
	return objects.header, errors.Join(err, objects.Close())
}

// take reads the objects that a scheduler reads, and their changes if there is a recorder. They are
// on disk until they are closed.
func take(ctx context.Context, s *session.Session, r Request, rec *recorder) (_ *spooled, err error) {
	kinds, err := Kinds(r.Resources)
	if err != nil {
		return nil, err
	}
	dir, remove, err := safeio.MakeTemp("snapshot")
	if err != nil {
		return nil, err
	}
	objects, err := newSpooled(dir)
	if err != nil {
		return nil, errors.Join(err, remove())
	}
	objects.remove = remove
	defer func() {
		if err != nil {
			err = errors.Join(err, objects.Close())
		}
	}()
	h := objects.header
	h.Format, h.Version, h.CreatedBy = snapshot.Format, snapshot.Version, r.Version
	h.Time = time.Now().UTC().Truncate(time.Second)
	if rec != nil {
		h.Format, rec.spool = snapshot.RecordingFormat, objects.spool
	}
	if len(r.From) > 0 {
		err = objects.readFiles(ctx, s, r, kinds, rec)
	} else {
		err = objects.readCluster(ctx, s, kinds, rec)
	}
	if err != nil {
		return nil, err
	}
	if rec != nil {
		ctx = context.WithoutCancel(ctx) // an interrupted recording is kept
	}
	objects.sort()
	if r.Anonymize && !h.Anonymized {
		err = s.Step("replace names", func() error { return objects.anonymize(ctx, kinds, dir) })
	}
	return objects, err
}

// Kinds returns the kinds that every scheduler reads, and the given kinds that plugins read.
func Kinds(resources []string) ([]*snapshot.Kind, error) {
	kinds := snapshot.Kinds()
	for _, resource := range resources {
		kind, err := snapshot.CustomKind(resource)
		if err != nil {
			return nil, problem.Invalidf("", "--resource: %w", err)
		}
		if !slices.ContainsFunc(kinds, func(k *snapshot.Kind) bool { return k.GroupResource() == resource }) {
			kinds = append(kinds, kind)
		}
	}
	return kinds, nil
}

// readCluster reads the cluster's objects.
func (o *spooled) readCluster(ctx context.Context, s *session.Session, kinds []*snapshot.Kind, rec *recorder) error {
	cfg, err := s.Connect()
	if err != nil {
		return err
	}
	release, err := inspect.ServerRelease(cfg)
	if err != nil {
		return err
	}
	h := o.header
	options := Options{Pods: &h.Pods, Log: s.Log}
	var read *Result
	err = s.Step("read the objects of the cluster", func() (err error) {
		if rec == nil {
			read, err = Cluster(ctx, cfg, kinds, o.spool, options)
		} else {
			read, err = rec.start(ctx, cfg, kinds, options)
		}
		return err
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
		s.Warn("the objects are not of one resource version: the API server had compacted it; " +
			"the header of the snapshot has the version of each kind")
	}
	if rec == nil {
		return nil
	}
	return rec.record(ctx, s, h)
}

// readFiles reads the objects in files.
func (o *spooled) readFiles(
	ctx context.Context, s *session.Session, r Request, kinds []*snapshot.Kind, rec *recorder,
) error {
	h := o.header
	var read *files.Result
	err := s.Step("read objects", func() (err error) {
		options := files.Options{Paths: r.From, Stdin: r.Stdin, Pods: &h.Pods, Resources: r.Resources, Custom: r.inPlace}
		if rec != nil {
			options.Changed = rec.add
		}
		read, err = files.Read(ctx, kinds, o.spool, options)
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
	if rec != nil {
		if err := rec.finishTrace(h); err != nil {
			return err
		}
	}
	for _, doubt := range read.Doubts {
		s.Note(doubt)
	}
	for _, kind := range slices.Sorted(maps.Keys(read.Ignored)) {
		s.Note(fmt.Sprintf("ignored: %s of kind %s, which no scheduler reads",
			plural.Count(read.Ignored[kind], "object"), kind))
	}
	for _, resource := range slices.Sorted(maps.Keys(read.Unnamed)) {
		s.Note("for a plugin that reads them, --resource " + resource + " keeps these objects")
	}
	return nil
}
