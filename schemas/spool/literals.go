package spool

import "errors"

// The pickles of allocator events are most of a journal. The pickles of allocator events have the same opcodes for each
// event, with an address, a size, a time and a mark between them. split moves these literals into one stream for each
// kind.
//
// To find the opcodes, split needs only the lengths of their arguments. From an unknown opcode on, split stores the
// rest of the pickle unchanged. join meets the same opcode and copies the rest.

const (
	streamCode  = iota // opcodes, lengths, and literals of no other stream
	streamLong6        // integers of 6 bytes: addresses
	streamLong7        // integers of 7 bytes: times in µs
	streamInt          // integers of 4 bytes: sizes
	streamShort        // integers of 2 bytes
	streamText         // short strings: marks
	nStreams
)

// streamWidth is the width of a stream's values; 0 = the values have no fixed width.
var streamWidth = [nStreams]int{0, 6, 7, 4, 2, 0}

// Opcodes of pickle protocol 4 with an argument.
const (
	opLong1        = 0x8a
	opShortUnicode = 0x8c
	opInt          = 'J'
	opShort        = 'M'
)

// argument describes an opcode's argument: the argument has fixed bytes, or counted bytes that hold the length of
// what follows. ok is false for an opcode that allocator events do not use.
func argument(op byte) (fixed, counted int, ok bool) {
	switch op {
	case '(', ')', '.', 'N', ']', 'a', 'e', 's', 't', 'u', '}', 0x85, 0x86, 0x87, 0x88, 0x89, 0x94:
		return 0, 0, true
	case 0x80, 'K', 'h', 'q':
		return 1, 0, true
	case opShort:
		return 2, 0, true
	case opInt, 'j', 'r':
		return 4, 0, true
	case 0x95, 'G':
		return 8, 0, true
	case opLong1, opShortUnicode, 'C':
		return 0, 1, true
	case 'X', 'B':
		return 0, 4, true
	}
	return 0, 0, false
}

// streamOf returns the stream for an opcode's literal of n bytes.
func streamOf(op byte, n int) int {
	switch {
	case op == opLong1 && n == 6:
		return streamLong6
	case op == opLong1 && n == 7:
		return streamLong7
	case op == opInt:
		return streamInt
	case op == opShort:
		return streamShort
	case op == opShortUnicode:
		return streamText
	}
	return streamCode
}

type streams [nStreams][]byte

// split divides a pickle's bytes among the streams.
func (s *streams) split(p []byte) {
	code := 0 // where the code bytes begin that are copied unchanged
	for i := 0; i < len(p); {
		n, counted, ok := argument(p[i])
		head := i + 1 + counted
		if ok && counted > 0 && head <= len(p) {
			n = int(littleEndian(p[i+1 : head]))
		}
		if !ok || head > len(p) || n < 0 || n > len(p)-head {
			break
		}
		if to := streamOf(p[i], n); to != streamCode {
			s[streamCode] = append(s[streamCode], p[code:head]...)
			s[to] = append(s[to], p[head:head+n]...)
			code = head + n
		}
		i = head + n
	}
	s[streamCode] = append(s[streamCode], p[code:]...)
}

var errStreams = errors.New("its streams do not fit together")

// take removes the first n bytes of a stream.
func (s *streams) take(stream, n int) ([]byte, error) {
	if n < 0 || n > len(s[stream]) {
		return nil, errStreams
	}
	b := s[stream][:n]
	s[stream] = s[stream][n:]
	return b, nil
}

// join appends the next pickle, of n bytes, to out. join is the inverse of split.
func (s *streams) join(out []byte, n int) ([]byte, error) {
	code := s[streamCode]
	begin, at := 0, 0 // places in the code: the begin of what is not yet in out, and the next opcode
	for left := n; left > 0; {
		if at == len(code) {
			return nil, errStreams
		}
		op := code[at]
		length, counted, ok := argument(op)
		head := 1 + counted
		if ok && counted > 0 && head <= left {
			if head > len(code)-at {
				return nil, errStreams
			}
			length = int(littleEndian(code[at+1 : at+head]))
		}
		if !ok || head > left || length < 0 || length > left-head {
			if left > len(code)-at {
				return nil, errStreams
			}
			at += left
			break
		}
		left -= head + length
		to := streamOf(op, length)
		if to == streamCode {
			head += length
		}
		if head > len(code)-at {
			return nil, errStreams
		}
		at += head
		if to != streamCode {
			literal, err := s.take(to, length)
			if err != nil {
				return nil, err
			}
			out = append(append(out, code[begin:at]...), literal...)
			begin = at
		}
	}
	s[streamCode] = code[at:]
	return append(out, code[begin:at]...), nil
}

// stored returns a stream in the form in which it is compressed: values of a fixed width in planes, and times as
// differences.
func (s *streams) stored(i int) []byte {
	b := s[i]
	if i == streamLong7 {
		b = append([]byte(nil), b...)
		differences(b, 7, 0, 7)
	}
	if w := streamWidth[i]; w > 0 {
		b = planes(b, w)
	}
	return b
}

// load is the inverse of stored.
func (s *streams) load(i int, b []byte) {
	if w := streamWidth[i]; w > 0 {
		b = rows(b, w)
	}
	if i == streamLong7 {
		sums(b, 7, 0, 7)
	}
	s[i] = b
}
