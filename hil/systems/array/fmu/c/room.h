/* The size of an array that may have no elements: an array of C has one or more. */
#ifndef ROOM_H
#define ROOM_H

enum { AT_LEAST_ONE = 1 };
#define ROOM(n) ((n) > 0 ? (n) : AT_LEAST_ONE)

#endif
