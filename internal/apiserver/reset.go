package apiserver

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
)

const (
	// registry is the prefix of all keys of an API server in etcd, its default of --etcd-prefix; registryEnd is the first key after them.
	registry, registryEnd = "/registry/", "/registry0"
	// transactionSize is the number of keys that one transaction deletes; etcd accepts 128.
	transactionSize = 100
)

// Revision returns the revision of etcd: it grows with each change of an object.
func (s *Server) Revision(ctx context.Context) (int64, error) {
	var answer rangeAnswer
	err := s.askEtcd(ctx, "range", map[string]any{"key": encode(registry), "count_only": true}, &answer)
	return answer.Header.Revision, err
}

// rangeAnswer is etcd's answer to a range request. Numbers of 64 bits are text in etcd's JSON.
type rangeAnswer struct {
	Header struct {
		Revision int64 `json:"revision,string"`
	} `json:"header"`
	KVs []struct {
		Key []byte `json:"key"`
	} `json:"kvs"`
}

// Reset removes all objects that were created after a revision, including those that wait for a finalizer: no controller would remove these.
// It removes them in etcd, so that the API server need not be started again. Objects that the API server creates for itself stay.
func (s *Server) Reset(ctx context.Context, revision int64) error {
	var created rangeAnswer
	err := s.askEtcd(ctx, "range", map[string]any{
		"key": encode(registry), "range_end": encode(registryEnd), "min_create_revision": strconv.FormatInt(revision+1, 10), "keys_only": true,
	}, &created)
	if err != nil {
		return err
	}
	var deletions []any
	for _, kv := range created.KVs {
		if key := string(kv.Key); !isBootstrapped(key) {
			deletions = append(deletions, map[string]any{"requestDeleteRange": map[string]any{"key": encode(key)}})
		}
	}
	for chunk := range slices.Chunk(deletions, transactionSize) {
		if err := s.askEtcd(ctx, "txn", map[string]any{"success": chunk}, &struct{}{}); err != nil {
			return err
		}
	}
	return nil
}

// isBootstrapped reports whether the API server creates an object for itself, which it may do after it is ready.
func isBootstrapped(key string) bool {
	if name, ok := strings.CutPrefix(key, registry+"namespaces/"); ok {
		return slices.Contains([]string{"default", "kube-system", "kube-public", "kube-node-lease"}, name)
	}
	return key == registry+"configmaps/kube-system/extension-apiserver-authentication"
}

func encode(key string) string { return base64.StdEncoding.EncodeToString([]byte(key)) }

// askEtcd sends a request to the JSON gateway of etcd.
func (s *Server) askEtcd(ctx context.Context, call string, request, answer any) error {
	body, err := json.Marshal(request)
	if err != nil {
		return fmt.Errorf("ask etcd: %w", err)
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, s.EtcdURL()+"/v3/kv/"+call, bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("ask etcd: %w", err)
	}
	response, err := http.DefaultClient.Do(r)
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
