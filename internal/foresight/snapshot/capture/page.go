package capture

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pmk-sched/pmk-sched/internal/foresight/snapshot"
)

// page identifies a page in a list, in a request or in a response.
type page struct {
	version string
	token   string // of the next page; empty in the request of the first page and the response of the last page
}

// page reads a page of a kind into the sink. After a failure the sink is unchanged.
func (c *collector) page(ctx context.Context, s served, ask page) (got page, err error) {
	resource := s.kind.GroupResource()
	begin, counts := c.sink.Count(resource), c.countedPods()
	var gone error // not worth a retry, although the API server calls some of these errors timeouts
	err = c.requests.Do(ctx, "list "+resource, func(ctx context.Context) (err error) {
		c.sink.Truncate(resource, begin)
		c.resetPods(counts)
		if got, err = c.request(ctx, s, ask); lost(err) {
			gone, err = err, nil
		}
		return err
	})
	return got, errors.Join(err, gone)
}

// request sends one request, and reads its answer while it arrives.
func (c *collector) request(ctx context.Context, s served, ask page) (page, error) {
	request := s.client.Get().Resource(s.kind.Resource).
		SetHeader("Accept", "application/json").
		Param("limit", strconv.Itoa(c.o.PageSize))
	switch {
	case ask.token != "":
		request = request.Param("continue", ask.token) // the token contains the version
	case ask.version != "":
		request = request.Param("resourceVersion", ask.version).Param("resourceVersionMatch",
			string(metav1.ResourceVersionMatchExact))
	}
	body, err := request.Stream(ctx)
	if err != nil {
		return page{}, err
	}
	defer body.Close()
	return readList(body, func(item map[string]any) error { return c.add(s, item) })
}

// add stores a list's object. The items in a list have no type.
func (c *collector) add(s served, item map[string]any) error {
	item["apiVersion"], item["kind"] = snapshot.APIVersion(s.kind.Group, s.version), s.kind.Name
	kept := s.kind.Strip(item)
	key, text, err := encode(s, kept)
	if err != nil {
		return err
	}
	if s.kind.Name == "Pod" && c.o.Pods != nil {
		c.o.Pods.Count(kept)
	}
	return c.sink.Add(s.kind.GroupResource(), key, text)
}

// encode returns an object's key and JSON.
func encode(s served, o map[string]any) (key string, text []byte, err error) {
	if key, err = s.kind.Key(o); err != nil {
		return "", nil, err
	}
	if text, err = snapshot.Encode(o); err != nil {
		return "", nil, fmt.Errorf("store %s %s: %w", s.kind.Name, key, err)
	}
	return key, text, nil
}

// readList calls do with each item in a list, and returns its version and its continue token. Only
// one item is in memory.
func readList(r io.Reader, do func(map[string]any) error) (page, error) {
	in := json.NewDecoder(r)
	in.UseNumber()
	var got page
	items := false
	if err := expect(in, json.Delim('{')); err != nil {
		return got, err
	}
	for in.More() {
		field, err := in.Token()
		if err != nil {
			return got, unexpectedEnd(err)
		}
		switch field {
		case "metadata":
			var metadata metav1.ListMeta
			if err := in.Decode(&metadata); err != nil {
				return got, unexpectedEnd(err)
			}
			got = page{version: metadata.ResourceVersion, token: metadata.Continue}
		case "items":
			items = true
			if err := readItems(in, do); err != nil {
				return got, err
			}
		default:
			var ignored json.RawMessage
			if err := in.Decode(&ignored); err != nil {
				return got, unexpectedEnd(err)
			}
		}
	}
	if err := expect(in, json.Delim('}')); err != nil {
		return got, err
	}
	if !items {
		return got, errors.New("the answer is not a list: it has no items")
	}
	return got, nil
}

func readItems(in *json.Decoder, do func(map[string]any) error) error {
	start, err := in.Token()
	if err != nil {
		return unexpectedEnd(err)
	}
	if start == nil {
		return nil // null: an empty list
	}
	if start != json.Delim('[') {
		return fmt.Errorf("items: expected a list, got %v", start)
	}
	for in.More() {
		var item map[string]any
		if err := in.Decode(&item); err != nil {
			return unexpectedEnd(err)
		}
		if item == nil {
			return errors.New("items: expected an object, got null")
		}
		if err := do(item); err != nil {
			return err
		}
	}
	return expect(in, json.Delim(']'))
}

func expect(in *json.Decoder, want json.Delim) error {
	got, err := in.Token()
	if err != nil {
		return unexpectedEnd(err)
	}
	if got != want {
		return fmt.Errorf("the answer is not a list: expected %v, got %v", want, got)
	}
	return nil
}

// unexpectedEnd marks an answer that ended too early as a lost connection, which is worth a retry.
func unexpectedEnd(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}
