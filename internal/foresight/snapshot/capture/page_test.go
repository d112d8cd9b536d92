package capture

import (
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestReadList(t *testing.T) {
	cases := map[string]struct {
		text  string
		items int
		want  page
		err   string // empty: none
	}{
		"a page": {
			`{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"7","continue":"x","remainingItemCount":3},"items":[{"a":1},{"b":2}]}`, 2, page{"7", "x"}, ""},
		"metadata last":      {`{"items":[{"a":1}],"metadata":{"resourceVersion":"7"}}`, 1, page{"7", ""}, ""},
		"no items":           {`{"metadata":{"resourceVersion":"7"},"items":[]}`, 0, page{"7", ""}, ""},
		"null items":         {`{"metadata":{"resourceVersion":"7"},"items":null}`, 0, page{"7", ""}, ""},
		"no version":         {`{"metadata":{},"items":[]}`, 0, page{}, ""},
		"not a list":         {`{"kind":"Status","message":"x"}`, 0, page{}, "no items"},
		"a text":             {`"x"`, 0, page{}, "not a list"},
		"items are a text":   {`{"items":"x"}`, 0, page{}, "expected a list"},
		"an item is null":    {`{"items":[null]}`, 0, page{}, "got null"},
		"ends in an item":    {`{"items":[{"a":1},{"b":`, 1, page{}, "unexpected EOF"},
		"ends after an item": {`{"items":[{"a":1}`, 1, page{}, "unexpected EOF"},
		"ends in metadata":   {`{"metadata":{"resou`, 0, page{}, "unexpected EOF"},
		"ends at once":       {``, 0, page{}, "unexpected EOF"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			items := 0
			got, err := readList(strings.NewReader(tc.text), func(map[string]any) error { items++; return nil })
			switch {
			case tc.err != "" && (err == nil || !strings.Contains(err.Error(), tc.err)):
				t.Errorf("got %v, want %q", err, tc.err)
			case tc.err == "" && err != nil:
				t.Error(err)
			case tc.err == "" && got != tc.want:
				t.Error(cmp.Diff(tc.want, got, cmp.AllowUnexported(page{})))
			}
			if items != tc.items {
				t.Errorf("%d items, want %d", items, tc.items)
			}
		})
	}
	stop := errors.New("stop")
	if _, err := readList(strings.NewReader(`{"items":[{}]}`), func(map[string]any) error { return stop }); !errors.Is(err,
		stop) {
		t.Errorf("got %v", err)
	}
	if _, err := readList(strings.NewReader(`{"items":[{}`), func(map[string]any) error { return nil }); !errors.Is(err,
		io.ErrUnexpectedEOF) {
		t.Errorf("a lost connection is not recognized: %v", err)
	}
}
