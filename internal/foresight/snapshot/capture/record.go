package capture

import (
	"context"
	"fmt"
	"os"
	"time"

	"k8s.io/client-go/rest"

	"github.com/pmk-sched/pmk-sched/internal/base/plural"
	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/base/safeio"
	"github.com/pmk-sched/pmk-sched/internal/cluster/session"
	"github.com/pmk-sched/pmk-sched/internal/foresight/snapshot"
	"github.com/pmk-sched/pmk-sched/internal/foresight/snapshot/archive"
)

// Record writes the objects that a scheduler reads and their changes to a file, which is replaced
// when the recording is complete. It ends after a duration, or when ctx is done: the file then has
// the changes until that moment. If files are recorded, they are a trace.
func Record(
	ctx context.Context, s *session.Session, r Request, duration time.Duration, file string,
) (header *snapshot.Header, err error) {
	rec := &recorder{duration: duration}
	err = safeio.WriteFile(context.WithoutCancel(ctx), file, 0o600, func(f *os.File) error {
		header, err = write(ctx, s, r, rec, file, f)
		return err
	})
	if err != nil {
		return nil, err
	}
	return header, rec.failed
}

// OpenRecording opens a recording that [Record] wrote. It need not be closed.
func OpenRecording(file string) (*Recording, error) {
	r := &Recording{file: file}
	err := r.read(func(in *archive.Reader) error {
		r.Header = in.Header()
		return nil
	})
	return r, err
}

// Recording is the path to a file with a recording, and its header.
type Recording struct {
	Header snapshot.Header
	file   string
}

// Each implements [Objects] with the snapshot's objects.
func (r *Recording) Each(do func(kind *snapshot.Kind, version string, object map[string]any) error) error {
	return r.read(func(in *archive.Reader) error { return in.Each(do) })
}

// Events calls do with each change after the snapshot, in time order.
func (r *Recording) Events(do func(archive.Event) error) error {
	return r.read(func(in *archive.Reader) error { return in.Events(do) })
}

func (r *Recording) read(use func(*archive.Reader) error) error {
	file, err := os.Open(r.file)
	if err != nil {
		return problem.Invalidf("", "read recording: %w", err)
	}
	return readArchive(file, archive.NewRecordingReader, use)
}

// recorder stores changes to objects.
type recorder struct {
	duration time.Duration
	spool    *Spool
	follower *Follower
	begin    time.Time
	events   int
	last     time.Duration
	// failed is the reason why the recording ended early.
	failed error
}

// start reads the objects. The recording begins afterwards.
func (r *recorder) start(
	ctx context.Context, cfg *rest.Config, kinds []*snapshot.Kind, o Options,
) (read *Result, err error) {
	r.begin = time.Now()
	if r.follower, err = Read(ctx, cfg, kinds, r.spool, o); err != nil {
		return nil, err
	}
	return r.follower.Result, nil
}

// record stores changes until the recording ends.
func (r *recorder) record(ctx context.Context, s *session.Session, h *snapshot.Header) error {
	bounded, cancel := context.WithTimeout(ctx, r.duration)
	defer cancel()
	s.Note(fmt.Sprintf("recording changes for %s; Ctrl-C ends it earlier", r.duration))
	err := s.Step("record changes", func() error {
		return r.follower.Follow(bounded, func(gone bool, object []byte) error {
			return r.add(time.Since(r.begin), gone, object)
		})
	})
	h.Recording = &snapshot.Recording{Seconds: time.Since(r.begin).Seconds(), Listed: r.follower.Listed()}
	if h.Recording.Listed > 0 {
		h.Notes = append(h.Notes, fmt.Sprintf("kinds were listed again %s: the times of changes before are those of "+
			"the lists", plural.Count(h.Recording.Listed, "time")))
	}
	if err != nil && r.events > 0 {
		r.failed = fmt.Errorf("the recording ended early: %w", err)
		return nil
	}
	return err
}

// add stores a change at a time since the beginning. It fails if the recording could not be read.
func (r *recorder) add(at time.Duration, gone bool, object []byte) error {
	if r.events == archive.MaxEvents {
		return problem.Errorf("record a shorter time", "a recording has at most %d changes", archive.MaxEvents)
	}
	r.events, r.last = r.events+1, max(r.last, at)
	key := fmt.Sprintf("%015d-%010d", at.Milliseconds(), r.events)
	return r.spool.Add(archive.Events, key, snapshot.EncodeEvent(at, gone, object))
}

// finishTrace completes the header for a recording from files.
func (r *recorder) finishTrace(h *snapshot.Header) error {
	if r.events == 0 {
		return problem.Invalidf("record a cluster, or a trace such as openb", "the files have no changes with times")
	}
	h.Recording = &snapshot.Recording{Seconds: r.last.Seconds()}
	return nil
}
