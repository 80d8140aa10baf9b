package mask

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"strings"
	"testing"
)

func gather(values ...string) *Secrets {
	var env []string
	for _, v := range values {
		env = append(env, "A_TOKEN="+v)
	}
	return Gather(nil, env, nil)
}

func TestGather(t *testing.T) {
	s := Gather(
		[]string{"python", "train.py", "--token", "flag-token-1", "--api-key=flag-key-22", "--key-dim", "not-a-secret",
			"--password", "--verbose",
			"--pad-token", "<|padding|>", "API_KEY=joined-key-3", "https://me:url-password-4@host/x", "--short-token",
			"abc"},
		[]string{"HF_TOKEN=env-token-55", "AWS_SECRET_ACCESS_KEY_ID=env-key-666", "KEYBOARD=not-a-key",
			"TOKENIZERS_PARALLELISM=notsecret",
			"PWD=/home/me/work", "MULTI_SECRET=line one\nline two", "EMPTY_TOKEN=", "DB=postgres://u:url-password-5@h"},
		map[string]any{"wandb_api_key": "param-key-777", "hidden_dim": 64, "url": "http://u:url-password-6@h"})
	masked := s.String(strings.Join([]string{"flag-token-1", "flag-key-22", "joined-key-3", "url-password-4",
		"env-token-55", "env-key-666",
		"line one\nline two", `line one\nline two`, "url-password-5", "param-key-777", "url-password-6"}, " "))
	if want := strings.TrimSpace(strings.Repeat("*** ", 11)); masked != want {
		t.Errorf("masked %q", masked)
	}
	for _, text := range []string{"not-a-secret", "--verbose", "<|padding|>", "not-a-key", "notsecret", "/home/me/work",
		"abc"} {
		if s.String(text) != text {
			t.Errorf("%q was masked", text)
		}
	}
}

func TestCommandAndParams(t *testing.T) {
	argv := []string{"python", "t.py", "--token", "abc", "--api-key=x", "--lr", "0.1", "--password", "--name",
		"long-token-value"}
	s := Gather(argv, []string{"X_TOKEN=long-token-value"}, nil)
	if got, want := strings.Join(s.Command(argv), " "), "python t.py --token *** --api-key=*** --lr 0.1 --password "+
		"--name ***"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	got := s.Params(map[string]any{"token": "abc", "lr": 0.1, "note": "x long-token-value", "tokens": int64(5)})
	if got["token"] != Mask || got["lr"] != 0.1 || got["note"] != "x ***" || got["tokens"] != int64(5) {
		t.Errorf("%v", got)
	}
}

func TestSameLength(t *testing.T) {
	s := gather("secret-1", "secret-1-longer")
	if got, want := string(s.SameLength([]byte("a secret-1-longer b secret-1 c"))),
		"a *************** b ******** c"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// The masking writer's output equals the masked whole text, however the text is divided into writes.
func TestWriterAcrossChunks(t *testing.T) {
	s := gather("aabaab", "aabaabaac", "bbbbbb", "aaaaaaa")
	r := rand.New(rand.NewPCG(1, 2))
	for range 5000 {
		text := make([]byte, r.IntN(60))
		for i := range text {
			text[i] = "aaabbc"[r.IntN(6)]
		}
		var out bytes.Buffer
		w := s.NewWriter(&out)
		for rest := text; len(rest) > 0; {
			n := 1 + r.IntN(len(rest))
			if got, err := w.Write(rest[:n]); got != n || err != nil {
				t.Fatal(got, err)
			}
			rest = rest[n:]
		}
		w.Flush()
		if want := s.String(string(text)); out.String() != want {
			t.Fatalf("%q: in chunks %q, whole %q", text, out.String(), want)
		}
		for _, secret := range s.values {
			if strings.Contains(out.String(), secret) {
				t.Fatalf("%q still holds a secret: %q", text, out.String())
			}
		}
	}
}

func TestWriterHoldsBackNoMoreThanItMust(t *testing.T) {
	var out bytes.Buffer
	w := gather("secret-value").NewWriter(&out)
	w.Write([]byte("continue? [y/n] "))
	if out.String() != "continue? [y/n] " {
		t.Errorf("a prompt is held back: %q", out.String())
	}
	w.Write([]byte("se"))
	w.Write([]byte("cond"))
	if out.String() != "continue? [y/n] second" {
		t.Errorf("%q", out.String())
	}
}

func TestSecretsInJSON(t *testing.T) {
	s := gather("quo\"te\\back<slash>")
	b, _ := json.Marshal(map[string]string{"m": "x quo\"te\\back<slash> y"})
	if got := s.String(string(b)); got != `{"m":"x *** y"}` {
		t.Errorf("%s", got)
	}
	// JSON from Python, or from Go without HTML escapes, has < as it is.
	if got := s.String(`{"m": "quo\"te\\back<slash>"}`); got != `{"m": "***"}` {
		t.Errorf("%s", got)
	}
}

func BenchmarkWriter(b *testing.B) {
	s := gather("hf_abcdefghijklmnop", "wandb-0123456789abcdef", "postgres-password")
	line := bytes.Repeat([]byte("step 12 loss 0.123 throughput 1234.5 samples/s\n"), 1000)
	w := s.NewWriter(discard{})
	b.SetBytes(int64(len(line)))
	for b.Loop() {
		w.Write(line)
	}
}

func BenchmarkLineWriter(b *testing.B) {
	s := gather("hf_abcdefghijklmnop", "wandb-0123456789abcdef", "postgres-password")
	line := bytes.Repeat([]byte("step 12 loss 0.123 throughput 1234.5 samples/s num_tokens=512 task disk\n"), 1000)
	w := s.NewLineWriter(discard{})
	b.SetBytes(int64(len(line)))
	for b.Loop() {
		w.Write(line)
	}
}

func BenchmarkSameLength(b *testing.B) {
	s := gather("hf_abcdefghijklmnop", "wandb-0123456789abcdef", "postgres-password")
	frame := bytes.Repeat([]byte("X\x04\x00\x00\x00addrq\x01\x8a\x06\x00\x00\x00\x5a\x3f\x7fX\x08\x00filename"), 1000)
	b.SetBytes(int64(len(frame)))
	for b.Loop() {
		s.SameLength(frame)
	}
}

type discard struct{}

func (discard) Write(b []byte) (int, error) { return len(b), nil }
