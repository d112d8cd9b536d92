package arbiter

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	// forwardedPath is the rest of the path of reviews that another replica passes on. They are not
	// passed on again.
	forwardedPath = "/forwarded"
	// forwardTime is the time that the leader has for an answer.
	forwardTime = 600 * time.Millisecond
	// maxAnswer is the maximum size of an answer, which has a message of a few lines.
	maxAnswer = 64 << 10
	// maxForwards bounds the connections to the leader, which are kept: reviews wait for one another
	// rather than for handshakes.
	maxForwards = 16
)

// transport returns the transport for reviews that are passed on. Each new connection trusts the
// current authority.
func (a *Arbiter) transport() *http.Transport {
	return &http.Transport{
		DialTLSContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			return (&tls.Dialer{Config: a.Serving.Authority().ClientConfig()}).DialContext(ctx, network, address)
		},
		MaxConnsPerHost: maxForwards, MaxIdleConnsPerHost: maxForwards, IdleConnTimeout: time.Minute,
		DisableCompression: true,
	}
}

// forward asks the leader.
func (a *Arbiter) forward(ctx context.Context, leader string, r *admissionv1.AdmissionRequest) (
	_ *admissionv1.AdmissionResponse, err error) {
	ctx, cancel := context.WithTimeout(ctx, forwardTime)
	defer cancel()
	body, err := json.Marshal(admissionv1.AdmissionReview{TypeMeta: metav1.TypeMeta{
		APIVersion: admissionv1.SchemeGroupVersion.String(), Kind: "AdmissionReview"}, Request: r})
	if err != nil {
		return nil, fmt.Errorf("encode the review: %w", err)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost,
		"https://"+leader+"/"+a.Serving.Token()+"/"+Path+forwardedPath, bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("ask the leader at %q: %w", leader, err)
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := a.client.Do(request)
	if err != nil {
		// The URL in the error has the token.
		return nil, fmt.Errorf("ask the leader at %q: %w", leader, errors.Unwrap(err))
	}
	defer func() { err = errors.Join(err, response.Body.Close()) }()
	text, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer))
	if err != nil {
		return nil, fmt.Errorf("read the answer of the leader at %q: %w", leader, err)
	}
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("ask the leader at %q: %s: %.200s", leader, response.Status, text)
	}
	var review admissionv1.AdmissionReview
	if err := json.Unmarshal(text, &review); err != nil {
		return nil, fmt.Errorf("decode the answer of the leader at %q: %w", leader, err)
	}
	if review.Response == nil {
		return nil, fmt.Errorf("decode the answer of the leader at %q: no response", leader)
	}
	return review.Response, nil
}
