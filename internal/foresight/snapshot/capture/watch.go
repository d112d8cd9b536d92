package capture

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/pmk-sched/pmk-sched/internal/foresight/snapshot"
)

// watch reports the changes to a kind after a version until the watch ends, and moves the version
// on. The API server ends a watch after a while, and a connection may break: neither is an error.
func (f *Follower) watch(ctx context.Context, s served, version *string) error {
	request := s.client.Get().Resource(s.kind.Resource).SetHeader("Accept", "application/json").
		Param("watch", "true").Param("allowWatchBookmarks", "true").Param("resourceVersion", *version)
	var body io.ReadCloser
	var gone error // not worth a retry, although the API server calls some of these errors timeouts
	//nolint:contextcheck // the body outlives the attempt
	err := f.requests.Do(ctx, "watch "+s.kind.GroupResource(), func(context.Context) (err error) {
		if body, err = request.Stream(ctx); lost(err) {
			gone, err = err, nil
		}
		return err
	})
	if err != nil || gone != nil {
		return errors.Join(err, gone)
	}
	defer body.Close()
	in := json.NewDecoder(body)
	in.UseNumber()
	for {
		var event struct {
			Type   watch.EventType
			Object map[string]any
		}
		if in.Decode(&event) != nil { // it has ended
			return nil
		}
		if err := f.event(s, event.Type, event.Object, version); err != nil {
			return err
		}
	}
}

// event reports the change in an event.
func (f *Follower) event(s served, what watch.EventType, o map[string]any, version *string) error {
	if what == watch.Error {
		return statusOf(o)
	}
	metadata, _ := o["metadata"].(map[string]any)
	if read, _ := metadata["resourceVersion"].(string); read != "" {
		defer func() { *version = read }()
	}
	if what == watch.Bookmark {
		return nil
	}
	key, text, err := encode(s, s.kind.Strip(o))
	if err != nil {
		return err
	}
	resource := s.kind.GroupResource()
	if what == watch.Deleted {
		f.mu.Lock()
		defer f.mu.Unlock()
		return f.gone(resource, key, text)
	}
	return f.set(resource, key, text)
}

// statusOf returns the error that an event contains.
func statusOf(o map[string]any) error {
	text, err := snapshot.Encode(o)
	if err != nil {
		return err
	}
	var status metav1.Status
	if err := json.Unmarshal(text, &status); err != nil {
		return fmt.Errorf("read the error of a watch: %w", err)
	}
	return apierrors.FromObject(&status)
}
