package readonly

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
)

// DecodeObject decodes an object in any API format.
func DecodeObject(body []byte, into runtime.Object) error {
	_, _, err := scheme.Codecs.UniversalDeserializer().Decode(body, nil, into)
	if err != nil {
		return fmt.Errorf("read what the scheduler writes: %w", err)
	}
	return nil
}

// stored is an object that the scheduler has written.
type stored struct {
	contentType string
	body        []byte
}

// lease answers requests for leases: the scheduler has its own, so that it always is the leader.
func (p *Proxy) lease(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if r.Method == http.MethodGet {
		if s, ok := p.leases[r.URL.Path]; ok {
			w.Header().Set("Content-Type", s.contentType)
			_, _ = w.Write(s.body) // the scheduler has gone
			return
		}
		Refuse(w, http.StatusNotFound, "NotFound", "the scheduler has not written it")
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, mostBytes))
	if err != nil {
		Refuse(w, http.StatusRequestEntityTooLarge, "RequestEntityTooLarge", err.Error())
		return
	}
	path := r.URL.Path
	if r.Method == http.MethodPost {
		named, _, err := scheme.Codecs.UniversalDeserializer().Decode(body, nil, nil)
		if object, ok := named.(metav1.Object); err == nil && ok {
			path += "/" + object.GetName()
		}
	}
	p.leases[path] = stored{r.Header.Get("Content-Type"), body}
	Echo(w, r, body)
}

// Echo answers with the written object.
func Echo(w http.ResponseWriter, r *http.Request, body []byte) {
	w.Header().Set("Content-Type", r.Header.Get("Content-Type"))
	if r.Method == http.MethodPost {
		w.WriteHeader(http.StatusCreated)
	}
	_, _ = w.Write(body) // the scheduler has gone
}

// Respond answers with an object.
func Respond(w http.ResponseWriter, code int, object any) {
	if status, ok := object.(metav1.Status); ok {
		status.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}
		object = status
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(object) // the scheduler has gone
}

// Refuse answers with an error.
func Refuse(w http.ResponseWriter, code int, reason metav1.StatusReason, message string) {
	Respond(w, code, metav1.Status{Status: metav1.StatusFailure, Code: int32(code), Reason: reason, Message: message})
}
