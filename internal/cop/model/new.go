package model

import (
	"cmp"
	"fmt"
	"net/http"
	"os"
	"time"

	"weir/internal/cop"
	"weir/internal/linux"
)

// Names of reviewers, as the policy writes them.
const (
	StaticName    = "static"
	AnthropicName = "anthropic"
	OpenAIName    = "openai"
	NoneName      = "none"
)

// Options say which reviewer there is, and its limits. A zero limit is its default, but for CacheFor.
type Options struct {
	Reviewer    string        // static (also the empty string), anthropic, openai or none
	Model       string        // empty: the default of anthropic; openai has none
	BaseURL     string        // empty: the service's own
	KeyFile     string        // file with the key, readable by its owner or group only
	KeyEnv      string        // or the environment variable with it
	Timeout     time.Duration // of one review, with waiting and retry; 5 s
	Concurrency int           // reviews that a model is asked at the same time; 8
	CacheFor    time.Duration // how long a verdict is kept; 0: not at all

	// Transport carries the HTTP requests; nil: an ordinary one, with the proxies of the environment.
	Transport http.RoundTripper
}

// New makes a reviewer. It fails on options that do not fit, and on a key that cannot be read; it contacts nobody.
func New(o Options) (*cop.Cop, error) {
	reviewer, err := o.reviewer()
	if err != nil {
		return nil, fmt.Errorf("make reviewer: %w", err)
	}
	return cop.New(cop.Options{
		Model: reviewer, None: o.Reviewer == NoneName,
		Timeout: o.Timeout, Concurrency: o.Concurrency, CacheFor: o.CacheFor,
	})
}

// reviewer is the one that asks a model, nil where none is asked.
func (o Options) reviewer() (cop.Reviewer, error) {
	key, err := linux.ReadKey(o.KeyFile, o.KeyEnv, os.Getenv)
	if err != nil {
		return nil, err
	}
	if o.BaseURL != "" {
		if err := checkURL(o.BaseURL, key != ""); err != nil {
			return nil, err
		}
	}
	switch o.Reviewer {
	case "", StaticName, NoneName:
		return nil, nil
	case AnthropicName:
		if key == "" {
			return nil, fmt.Errorf("anthropic needs a key: name a file or an environment variable that holds it")
		}
		return newAnthropic(o.client(), cmp.Or(o.BaseURL, anthropicURL), cmp.Or(o.Model, anthropicModel), key), nil
	case OpenAIName:
		if o.Model == "" {
			return nil, fmt.Errorf("openai needs a model")
		}
		if key == "" && o.BaseURL == "" {
			return nil, fmt.Errorf("openai needs a key, or the base URL of a server that asks for none")
		}
		return newOpenAI(o.client(), cmp.Or(o.BaseURL, openaiURL), o.Model, key), nil
	}
	return nil, fmt.Errorf("unknown reviewer %q: accepted are static, anthropic, openai, none", o.Reviewer)
}

func (o Options) client() *http.Client { return newClient(o.Transport, max(o.Concurrency, 2)) }
