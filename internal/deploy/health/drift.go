package health

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// ObjectDrift describes how a live object differs from the recorded one.
type ObjectDrift struct {
	// Object is Kind/namespace/name.
	Object string `json:"object"`
	// Missing is set if it does not exist, Foreign if it exists without pmk-sched's labels.
	Missing bool         `json:"missing,omitempty"`
	Foreign bool         `json:"foreign,omitempty"`
	Fields  []FieldDrift `json:"fields,omitempty"`
}

// FieldDrift is one field that differs. Values in Secrets and ConfigMaps are left out.
type FieldDrift struct {
	// Path is the field's path: `spec.template.spec.containers[name=main].image`.
	Path string `json:"path"`
	// Live and Recorded are values as JSON. An empty value means that the field is not set.
	Live     string `json:"live,omitempty"`
	Recorded string `json:"recorded,omitempty"`
	// Manager last set the field, at Time, if the API server has recorded it.
	Manager string     `json:"manager,omitempty"`
	Time    *time.Time `json:"time,omitempty"`
}

// String describes the field on one line.
func (f FieldDrift) String() string {
	text := f.Path + " was changed"
	switch {
	case f.Live != "" && f.Recorded != "":
		text = fmt.Sprintf("%s is %s, recorded is %s", f.Path, shorten(f.Live), shorten(f.Recorded))
	case f.Live != "":
		text = fmt.Sprintf("%s is %s, and is not recorded", f.Path, shorten(f.Live))
	case f.Recorded != "":
		text = fmt.Sprintf("%s is not set, recorded is %s", f.Path, shorten(f.Recorded))
	}
	if f.Manager != "" {
		text += " (" + f.Manager
		if f.Time != nil {
			text += " at " + stamp(*f.Time)
		}
		text += ")"
	}
	return text
}

// CompareFields returns the fields in which a live object differs from the result of applying the
// recorded object. Fields that the API server sets do not count. The live object's managed fields
// record who changed them.
func CompareFields(live, applied *unstructured.Unstructured) []FieldDrift {
	c := comparison{managed: live.GetManagedFields()}
	if kind := live.GetKind(); kind == "Secret" || kind == "ConfigMap" {
		c.hides = true
	}
	for _, name := range union(live.Object, applied.Object) {
		if name != "status" && name != "metadata" {
			c.compare([]step{{key: name}}, live.Object[name], applied.Object[name])
		}
	}
	for _, name := range []string{"labels", "annotations"} {
		c.compare([]step{{key: "metadata"}, {key: name}}, metadataOf(live, name), metadataOf(applied, name))
	}
	return c.found
}

func metadataOf(o *unstructured.Unstructured, name string) any {
	value, _, _ := unstructured.NestedFieldNoCopy(o.Object, "metadata", name)
	return value
}

// step is one step in a path: a map's key, or an item in a list that is identified by its name.
type step struct {
	key  string
	item map[string]any
}

type comparison struct {
	managed []metav1.ManagedFieldsEntry
	hides   bool
	found   []FieldDrift
}

// compare descends into maps and into lists whose items have names.
func (c *comparison) compare(path []step, live, recorded any) {
	if same(live, recorded) {
		return
	}
	liveMap, isMap := live.(map[string]any)
	recordedMap, wasMap := recorded.(map[string]any)
	if (isMap || live == nil) && (wasMap || recorded == nil) && len(liveMap)+len(recordedMap) > 0 &&
		(isMap && wasMap || len(path) <= 2) {
		for _, key := range union(liveMap, recordedMap) {
			c.compare(append(slices.Clone(path), step{key: key}), liveMap[key], recordedMap[key])
		}
		return
	}
	liveItems, named := byName(live)
	recordedItems, wereNamed := byName(recorded)
	if named && wereNamed {
		for _, name := range union(liveItems, recordedItems) {
			item, ok := liveItems[name].(map[string]any)
			if !ok {
				item, _ = recordedItems[name].(map[string]any)
			}
			c.compare(append(slices.Clone(path), step{key: name, item: item}), liveItems[name], recordedItems[name])
		}
		return
	}
	c.add(path, live, recorded)
}

func (c *comparison) add(path []step, live, recorded any) {
	field := FieldDrift{Path: pathText(path)}
	if !c.hides || path[0].key == "metadata" {
		field.Live, field.Recorded = valueText(live), valueText(recorded)
	}
	field.Manager, field.Time = managerOf(c.managed, path)
	c.found = append(c.found, field)
}

// same compares values as JSON has them: 1 and 1.0 are the same number, and a missing list is an
// empty one.
func same(a, b any) bool { return empty(a) && empty(b) || valueText(a) == valueText(b) }

func empty(v any) bool {
	switch value := v.(type) {
	case nil:
		return true
	case map[string]any:
		return len(value) == 0
	case []any:
		return len(value) == 0
	}
	return false
}

// byName returns the items in a list of maps by their names; false if an item has none, or if two
// have the same.
func byName(v any) (map[string]any, bool) {
	list, ok := v.([]any)
	if !ok || len(list) == 0 {
		return nil, false
	}
	items := map[string]any{}
	for _, item := range list {
		fields, _ := item.(map[string]any)
		name, _ := fields["name"].(string)
		if _, taken := items[name]; name == "" || taken {
			return nil, false
		}
		items[name] = item
	}
	return items, true
}

// union returns the keys of both maps, sorted.
func union(a, b map[string]any) []string {
	keys := slices.Concat(slices.Collect(maps.Keys(a)), slices.Collect(maps.Keys(b)))
	slices.Sort(keys)
	return slices.Compact(keys)
}

func pathText(path []step) string {
	var b strings.Builder
	for i, s := range path {
		switch {
		case s.item != nil:
			fmt.Fprintf(&b, "[name=%s]", s.key)
		case strings.ContainsAny(s.key, "./"):
			fmt.Fprintf(&b, "[%s]", s.key)
		case i > 0:
			b.WriteString("." + s.key)
		default:
			b.WriteString(s.key)
		}
	}
	return b.String()
}

// valueText is a value as JSON.
func valueText(v any) string {
	if v == nil {
		return ""
	}
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if encoder.Encode(v) != nil {
		return fmt.Sprint(v)
	}
	return strings.TrimSpace(b.String())
}

// managerOf returns the manager that last set the field at a path, and when. Changes to the status
// are ignored: users do not change it.
func managerOf(managed []metav1.ManagedFieldsEntry, path []step) (manager string, at *time.Time) {
	for _, entry := range managed {
		if entry.Subresource == "status" || entry.FieldsV1 == nil {
			continue
		}
		var fields map[string]any
		if json.Unmarshal(entry.FieldsV1.GetRawBytes(), &fields) != nil || !owns(fields, path) {
			continue
		}
		if entry.Time == nil {
			if manager == "" {
				manager = entry.Manager
			}
			continue
		}
		if at == nil || entry.Time.After(*at) {
			changed := entry.Time.UTC()
			manager, at = entry.Manager, &changed
		}
	}
	return manager, at
}

// owns reports whether a set of fields (FieldsV1 in k8s.io/apimachinery/pkg/apis/meta/v1) has a
// path, or a field that contains it.
func owns(fields map[string]any, path []step) bool {
	for _, s := range path {
		next, found := child(fields, s)
		if !found {
			return false
		}
		if len(next) == 0 {
			return true // an atomic field, which is set as a whole
		}
		fields = next
	}
	return true
}

// child returns the fields below a step.
func child(fields map[string]any, s step) (map[string]any, bool) {
	if s.item == nil {
		next, found := fields["f:"+s.key].(map[string]any)
		return next, found
	}
	for key, below := range fields {
		var identity map[string]any
		text, isKey := strings.CutPrefix(key, "k:")
		if !isKey || json.Unmarshal([]byte(text), &identity) != nil {
			continue
		}
		if next, ok := below.(map[string]any); ok && matches(identity, s.item) {
			return next, true
		}
	}
	return nil, false
}

// matches reports whether the values of an identity equal a list item's values.
func matches(identity, item map[string]any) bool {
	for key, value := range identity {
		if !same(value, item[key]) {
			return false
		}
	}
	return true
}
