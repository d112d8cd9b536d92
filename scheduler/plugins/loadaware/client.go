package loadaware

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync"
	"time"
)

const (
	maxFileBytes   = 1 << 20
	maxHeaderBytes = 64 << 10
	quotedBytes    = 200
)

// client queries Prometheus. It reads the certificates for every query and uses them if they
// changed, so that renewed certificates do not require a restart.
type client struct {
	server   Prometheus
	base     url.URL
	timeout  time.Duration
	maxBytes int64

	mu    sync.Mutex
	files [sha256.Size]byte
	http  *http.Client
}

func newClient(s *settings) *client {
	return &client{server: s.Prometheus, base: s.base, timeout: s.timeout, maxBytes: s.Prometheus.MaxBytes}
}

func (c *client) query(ctx context.Context, promQL string) ([]sample, error) {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	httpClient, err := c.current()
	if err != nil {
		return nil, err
	}
	address := c.base
	address.RawQuery = url.Values{"query": {promQL}}.Encode()
	// net/http retries GET, unlike POST, if the server has just closed an idle connection.
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address.String(), nil)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Accept", "application/json")
	if c.server.BearerTokenFile != "" {
		token, err := c.token()
		if err != nil {
			return nil, err
		}
		request.Header.Set("Authorization", "Bearer "+token)
	}
	response, err := httpClient.Do(request)
	if err != nil {
		return nil, withoutURL(err)
	}
	defer response.Body.Close()
	var body bytes.Buffer
	if _, err := body.ReadFrom(io.LimitReader(response.Body, c.maxBytes+1)); err != nil {
		return nil, fmt.Errorf("read response: %w", err)
	}
	if int64(body.Len()) > c.maxBytes {
		return nil,
			fmt.Errorf("the response is larger than prometheus.maxBytes (%d); a query should return one sample per node",
				c.maxBytes)
	}
	return interpret(response, body.Bytes())
}

// withoutURL removes method and URL from an error of net/http: the query is long, and the log line
// contains the metric's name.
func withoutURL(err error) error {
	var failed *url.Error
	if errors.As(err, &failed) {
		return failed.Err
	}
	return err
}

func interpret(response *http.Response, body []byte) ([]sample, error) {
	if response.StatusCode >= 300 && response.StatusCode < 400 {
		return nil,
			fmt.Errorf(
				"the response is a redirect (%d) to %q, which is not followed to protect the token; set prometheus.url to the "+
					"final address",
				response.StatusCode, shorten(response.Header.Get("Location")))
	}
	var answer struct {
		Status    string `json:"status"`
		ErrorType string `json:"errorType"`
		Error     string `json:"error"`
		Data      struct {
			ResultType string          `json:"resultType"`
			Result     json.RawMessage `json:"result"`
		} `json:"data"`
	}
	err := json.Unmarshal(body, &answer)
	switch {
	case err == nil && answer.Status == "error":
		return nil, fmt.Errorf("the query failed (%d, %s): %q", response.StatusCode, shorten(answer.ErrorType),
			shorten(answer.Error))
	case response.StatusCode != http.StatusOK:
		return nil, fmt.Errorf("the response has status %d: %q", response.StatusCode, shorten(string(body)))
	case err != nil:
		return nil, fmt.Errorf("the response is not from Prometheus: %w: %q", err, shorten(string(body)))
	case answer.Status != "success":
		return nil, fmt.Errorf("the response is not from Prometheus: status %q", shorten(answer.Status))
	case answer.Data.ResultType != "vector":
		return nil, fmt.Errorf("the query returns a %q, expected an instant vector with one sample per node",
			shorten(answer.Data.ResultType))
	}
	var samples []sample
	if err := json.Unmarshal(answer.Data.Result, &samples); err != nil {
		return nil, fmt.Errorf("decode samples: %w", err)
	}
	return samples, nil
}

func shorten(text string) string {
	text = strings.TrimSpace(text)
	if len(text) > quotedBytes {
		return text[:quotedBytes] + "…"
	}
	return text
}

func (c *client) token() (string, error) {
	raw, err := readFile(c.server.BearerTokenFile)
	if err != nil {
		return "", fmt.Errorf("read prometheus.bearerTokenFile: %w", err)
	}
	token := strings.TrimSpace(string(raw))
	if token == "" || strings.ContainsAny(token, "\r\n\x00 \t") {
		return "", fmt.Errorf("read prometheus.bearerTokenFile: %s must contain one token", c.server.BearerTokenFile)
	}
	return token, nil
}

// current returns an HTTP client with the current certificates.
func (c *client) current() (*http.Client, error) {
	var texts [3][]byte
	hash := sha256.New()
	for i, file := range []struct{ field, path string }{
		{"caFile", c.server.CAFile}, {"certFile", c.server.CertFile}, {"keyFile", c.server.KeyFile},
	} {
		if file.path == "" {
			continue
		}
		text, err := readFile(file.path)
		if err != nil {
			return nil, fmt.Errorf("read prometheus.%s: %w", file.field, err)
		}
		texts[i] = text
		fmt.Fprintf(hash, "%d:%d:", i, len(text))
		hash.Write(text)
	}
	var sum [sha256.Size]byte
	hash.Sum(sum[:0])

	c.mu.Lock()
	defer c.mu.Unlock()
	if c.http != nil && c.files == sum {
		return c.http, nil
	}
	config, err := c.tlsConfig(texts[0], texts[1], texts[2])
	if err != nil {
		return nil, err
	}
	if c.http != nil {
		c.http.CloseIdleConnections()
	}
	c.files = sum
	c.http = &http.Client{
		Transport: &http.Transport{
			DialContext:            (&net.Dialer{Timeout: c.timeout}).DialContext,
			TLSClientConfig:        config,
			TLSHandshakeTimeout:    c.timeout,
			MaxResponseHeaderBytes: maxHeaderBytes,
			MaxIdleConnsPerHost:    maxMetrics,
			IdleConnTimeout:        5 * time.Minute,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return c.http, nil
}

func (c *client) tlsConfig(ca, cert, key []byte) (*tls.Config, error) {
	config := &tls.Config{
		MinVersion: tls.VersionTLS12, ServerName: c.server.ServerName, InsecureSkipVerify: c.server.InsecureSkipVerify,
	}
	field := "caFile"
	if c.server.CA != "" {
		field, ca = "ca", []byte(c.server.CA)
	}
	if ca != nil {
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(ca) {
			return nil, fmt.Errorf("read prometheus.%s: no PEM certificate found", field)
		}
	}
	if cert != nil {
		pair, err := tls.X509KeyPair(cert, key)
		if err != nil {
			return nil, fmt.Errorf("read prometheus.certFile and prometheus.keyFile: %w", err)
		}
		config.Certificates = []tls.Certificate{pair}
	}
	return config, nil
}

func readFile(path string) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	var content bytes.Buffer
	if _, err := content.ReadFrom(io.LimitReader(file, maxFileBytes+1)); err != nil {
		return nil, err
	}
	if content.Len() > maxFileBytes {
		return nil, fmt.Errorf("%s is larger than %d bytes", path, maxFileBytes)
	}
	return content.Bytes(), nil
}
