package apiserver

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
)

// registry is the prefix of all keys that an API server has in etcd, its default for --etcd-prefix;
// registryEnd is the first key after them.
const registry, registryEnd = "/registry/", "/registry0"

// etcdHeader is in every answer from etcd.
type etcdHeader struct {
	Revision int64 `json:"revision,string"`
}

// Revision returns etcd's revision: it grows with each object change.
func (s *Server) Revision(ctx context.Context) (int64, error) {
	var answer rangeAnswer
	err := s.AskEtcd(ctx, "kv/range", map[string]any{"key": encode(registry), "count_only": true}, &answer)
	return answer.Header.Revision, err
}

// rangeAnswer is etcd's answer to a range request. 64-bit numbers are text in etcd's JSON.
type rangeAnswer struct {
	Header etcdHeader `json:"header"`
	KVs    []struct {
		Key []byte `json:"key"`
	} `json:"kvs"`
}

// Object is an object in etcd.
type Object struct {
	// Key is below the API server's prefix, such as pods/NAMESPACE/NAME.
	Key string
	// Value is JSON in a version that the API server decodes, with all that it sets when it creates an
	// object.
	Value []byte
}

// Put writes objects to etcd in their order, in one transaction, and returns its revision. The API
// server reads them from etcd a moment later.
func (s *Server) Put(ctx context.Context, objects []Object) (revision int64, err error) {
	puts := make([]any, 0, len(objects))
	for _, o := range objects {
		puts = append(puts, map[string]any{
			"requestPut": map[string]any{"key": encode(registry + o.Key), "value": encode(o.Value)},
		})
	}
	var answer struct {
		Header etcdHeader `json:"header"`
	}
	err = s.AskEtcd(ctx, "kv/txn", map[string]any{"success": puts}, &answer)
	return answer.Header.Revision, err
}

// Remove removes objects from etcd by their keys, as in [Object]. The API server reads that a
// moment later.
func (s *Server) Remove(ctx context.Context, keys []string) error {
	deletions := make([]any, 0, len(keys))
	for _, key := range keys {
		deletions = append(deletions, map[string]any{"requestDeleteRange": map[string]any{"key": encode(registry + key)}})
	}
	return s.deleteKeys(ctx, deletions)
}

func encode[T string | []byte](text T) string { return base64.StdEncoding.EncodeToString([]byte(text)) }

// AskEtcd sends a request to etcd's JSON gateway: call is a path such as kv/range.
func (s *Server) AskEtcd(ctx context.Context, call string, request, answer any) error {
	body, err := json.Marshal(request)
	if err != nil {
		return fmt.Errorf("ask etcd: %w", err)
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, s.store.url+"/v3/"+call, bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("ask etcd: %w", err)
	}
	response, err := s.store.client.Do(r)
	if err != nil {
		return fmt.Errorf("ask etcd: %w", err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", response.Status, text)
	}
	if err == nil {
		err = json.Unmarshal(text, answer)
	}
	if err != nil {
		return fmt.Errorf("ask etcd for %s: %w", call, err)
	}
	return nil
}
