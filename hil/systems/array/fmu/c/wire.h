/* The steps of SMA wires; the same laws as the modules of hil.mechanics.sma that every function names. Rows of
 * constants are those of the modules; data.h has where they are. */
#ifndef WIRE_H
#define WIRE_H

#include <stdbool.h>

/* hil.mechanics.sma.wire.advance: temperature and austenite fraction after a time at a constant duty. */
void wire_advance(const double *law, double duty, double *T, double *xi, double remaining);

/* hil.mechanics.sma.wire.ohm_per_m_of */
double wire_ohm_per_m(const double *law, double T, double xi, double strain);

/* hil.mechanics.sma.stressed.stroke: the strain of martensite beyond austenite's, and its slope with stress. */
double stressed_stroke(const double *c, double stress, double *slope);

/* hil.mechanics.sma.stressed.places: middle and width of the heating and of the cooling branch. */
void stressed_places(const double *c, double stress, double slope, double place[4]);

/* hil.mechanics.sma.stressed.advance */
void stressed_advance(const double *law, const double *c, const double place[4], double duty, double *T, double *xi,
                      double remaining);

/* hil.mechanics.sma.stressed.settled; returns the width of the branch that the wire is on. */
double stressed_settled(const double *c, const double place[4], double per_xi, double *T, double *xi);

/* hil.mechanics.sma.stressed.moves */
double stressed_moves(const double *c, const double place[4], double strain, double T, bool heating);

#endif
