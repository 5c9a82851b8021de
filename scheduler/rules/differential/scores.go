package main

import (
	"fmt"
	"sync"

	"github.com/go-logr/logr"
)

// The messages with which kube-scheduler logs scores. It shows them nowhere else.
const (
	totalMessage  = "Calculated node's final score for pod"
	pluginMessage = "Plugin scored node for pod"
)

// scoreLog is a log that keeps the scores and drops the rest. Plugins log from several goroutines.
type scoreLog struct {
	mu      sync.Mutex
	totals  map[string]int64
	plugins map[string]map[string]int64
}

var _ logr.LogSink = &scoreLog{}

func newScoreLog() *scoreLog {
	return &scoreLog{totals: map[string]int64{}, plugins: map[string]map[string]int64{}}
}

func (s *scoreLog) Init(logr.RuntimeInfo) {}

// Enabled at every level: scores are logged at the highest.
func (s *scoreLog) Enabled(int) bool               { return true }
func (s *scoreLog) Error(error, string, ...any)    {}
func (s *scoreLog) WithValues(...any) logr.LogSink { return s }
func (s *scoreLog) WithName(string) logr.LogSink   { return s }
func (s *scoreLog) Info(_ int, msg string, kv ...any) {
	if msg != totalMessage && msg != pluginMessage {
		return
	}
	values := map[string]any{}
	for i := 0; i+1 < len(kv); i += 2 {
		values[fmt.Sprint(kv[i])] = kv[i+1]
	}
	node := fmt.Sprint(values["node"])
	score, isScore := values["score"].(int64)
	if !isScore {
		panic(fmt.Sprintf("%q without a score: %v", msg, kv))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if msg == totalMessage {
		s.totals[node] = score
		return
	}
	if s.plugins[node] == nil {
		s.plugins[node] = map[string]int64{}
	}
	s.plugins[node][fmt.Sprint(values["plugin"])] = score
}
