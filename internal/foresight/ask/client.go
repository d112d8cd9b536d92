package ask

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"

	"github.com/pmk-sched/pmk-sched/internal/base/problem"
)

// SocketPrefix is the prefix of an address that is the path of a Unix socket.
const SocketPrefix = "unix:"

// mostAnswer limits the bytes of an answer.
const mostAnswer = 16 << 20

// Client asks a server.
type Client struct {
	// Address is https://HOST:PORT, or unix:PATH.
	Address string
	// Token is the server's token. CA has the certificates of the authorities that may sign the
	// server's certificate, in PEM. They default to those of the system.
	Token string
	CA    []byte
}

// Ask asks a question. Errors of the server about the question are errors about the user's input
// (package problem).
func (c *Client) Ask(ctx context.Context, q Question) (*Answer, error) {
	text, err := json.Marshal(q)
	if err != nil {
		return nil, fmt.Errorf("write the question: %w", err)
	}
	answer := &Answer{}
	return answer, c.do(ctx, http.MethodPost, "/v1/ask", text, answer)
}

// Status returns the schedulers that answer.
func (c *Client) Status(ctx context.Context) ([]Status, error) {
	var all []Status
	return all, c.do(ctx, http.MethodGet, "/v1/status", nil, &all)
}

func (c *Client) do(ctx context.Context, method, path string, body []byte, into any) error {
	transport, base, err := c.transport()
	if err != nil {
		return err
	}
	defer transport.CloseIdleConnections()
	request, err := http.NewRequestWithContext(ctx, method, base+path, bytes.NewReader(body))
	if err != nil {
		return problem.Invalidf("", "invalid address %s: %w", c.Address, err)
	}
	request.Header.Set("Content-Type", "application/json")
	if c.Token != "" {
		request.Header.Set("Authorization", "Bearer "+c.Token)
	}
	response, err := (&http.Client{Transport: transport}).Do(request)
	if err != nil {
		return problem.WithHint(fmt.Errorf("ask %s: %w", c.Address, errors.Unwrap(err)),
			"`pmk-sched ask serve` starts a server")
	}
	defer response.Body.Close()
	text, err := io.ReadAll(io.LimitReader(response.Body, mostAnswer))
	if err != nil {
		return fmt.Errorf("ask %s: %w", c.Address, err)
	}
	if response.StatusCode == http.StatusOK {
		if err := json.Unmarshal(text, into); err != nil {
			return fmt.Errorf("ask %s: read the answer: %w", c.Address, err)
		}
		return nil
	}
	var failure Failure
	if json.Unmarshal(text, &failure) != nil || failure.Error == "" {
		failure.Error = response.Status
	}
	switch response.StatusCode {
	case http.StatusUnprocessableEntity, http.StatusBadRequest:
		return problem.Invalidf(failure.Hint, "%s", failure.Error)
	}
	return problem.WithHint(fmt.Errorf("ask %s: %s", c.Address, failure.Error), failure.Hint)
}

// transport returns the connection to the server, and the beginning of its URLs.
func (c *Client) transport() (*http.Transport, string, error) {
	if path, ok := strings.CutPrefix(c.Address, SocketPrefix); ok {
		return &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", path)
		}}, "http://socket", nil
	}
	address, err := url.Parse(c.Address)
	if err != nil || address.Scheme != "https" || address.Host == "" {
		return nil, "", problem.Invalidf("", "invalid address %q: must be https://HOST:PORT or unix:PATH", c.Address)
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if len(c.CA) > 0 {
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(c.CA) {
			return nil, "", problem.Invalidf("", "the certificate authority has no certificate in PEM")
		}
	}
	return &http.Transport{TLSClientConfig: config}, "https://" + address.Host, nil
}
