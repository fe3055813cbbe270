"""What the leg's sources print, a key of `[model]` and a value a line.

Zeros that only say in which plane the leg lies are left out.
"""

# Makkonen 2021, Simulated Muscle Driven Leg (LUT): Fig. 10, Tables 4 to 6.
MAKKONEN = """\
bodies.thigh.mass_kg 9.3014
bodies.thigh.inertia_kg_m2.1 0.1412
bodies.thigh.inertia_kg_m2.2 0.0351
bodies.thigh.inertia_kg_m2.3 0.1339
bodies.shin.mass_kg 3.7075
bodies.shin.inertia_kg_m2.1 0.0511
bodies.shin.inertia_kg_m2.2 0.0051
bodies.shin.inertia_kg_m2.3 0.0504
bodies.foot.mass_kg 1.5666
bodies.foot.inertia_kg_m2.1 0.0052
bodies.foot.inertia_kg_m2.2 0.0025
bodies.foot.inertia_kg_m2.3 0.0051
joints.hip.at_child_m.3 0.17
joints.knee.at_parent_m.3 -0.2258
joints.knee.at_child_m.3 0.1867
joints.ankle.at_parent_m.3 -0.2433
joints.ankle.at_child_m.2 -0.0636
joints.ankle.at_child_m.3 0.0148
muscles.TA.F_max_N 1528.0
muscles.TA.l_CE_opt_m 0.082
muscles.TA.l_SEE_0_m 0.223
muscles.TA.path.1.at_m.2 0.018
muscles.TA.path.1.at_m.3 0.0247
muscles.TA.path.2.at_m.2 0.033
muscles.TA.path.2.at_m.3 -0.2083
muscles.TA.path.3.at_m.2 0.0044
muscles.TA.path.3.at_m.3 -0.0092
muscles.SOL.F_max_N 3883.0
muscles.SOL.l_CE_opt_m 0.055
muscles.SOL.l_SEE_0_m 0.245
muscles.SOL.path.1.at_m.2 -0.002
muscles.SOL.path.1.at_m.3 0.0337
muscles.SOL.path.2.at_m.2 -0.1126
muscles.SOL.path.2.at_m.3 0.0038
"""

# OpenSim's model gait2354, put into the same plane; gastrocnemius' force: Makkonen 2021, 4.2.
GAIT2354 = """\
muscles.GAS.F_max_N 1639.0
muscles.GAS.l_CE_opt_m 0.09
muscles.GAS.l_SEE_0_m 0.36
muscles.GAS.path.1.at_m.2 -0.019
muscles.GAS.path.1.at_m.3 -0.2229
muscles.GAS.path.2.at_m.2 -0.03
muscles.GAS.path.2.at_m.3 -0.2322
muscles.GAS.path.3.at_m.2 -0.1126
muscles.GAS.path.3.at_m.3 0.0038
muscles.VAS.F_max_N 5000.0
muscles.VAS.l_CE_opt_m 0.107
muscles.VAS.l_SEE_0_m 0.116
muscles.VAS.path.1.at_m.2 0.029
muscles.VAS.path.1.at_m.3 -0.0224
muscles.VAS.path.2.at_m.2 0.0335
muscles.VAS.path.2.at_m.3 -0.0384
muscles.VAS.path.3.at_m.2 0.0555
muscles.VAS.path.3.at_m.3 0.212
muscles.RF.F_max_N 1169.0
muscles.RF.l_CE_opt_m 0.114
muscles.RF.l_SEE_0_m 0.31
muscles.RF.path.1.at_m.2 0.0412
muscles.RF.path.1.at_m.3 0.035
muscles.RF.path.2.at_m.2 0.0618
muscles.RF.path.2.at_m.3 0.2077
muscles.HAM.F_max_N 2700.0
muscles.HAM.l_CE_opt_m 0.109
muscles.HAM.l_SEE_0_m 0.326
muscles.HAM.path.1.at_m.2 -0.0553
muscles.HAM.path.1.at_m.3 -0.0365
muscles.HAM.path.2.at_m.2 -0.0301
muscles.HAM.path.2.at_m.3 0.1507
muscles.HAM.path.3.at_m.2 -0.0234
muscles.HAM.path.3.at_m.3 0.1304
muscles.BFSH.F_max_N 804.0
muscles.BFSH.l_CE_opt_m 0.173
muscles.BFSH.l_SEE_0_m 0.089
muscles.BFSH.path.1.at_m.2 0.005
muscles.BFSH.path.1.at_m.3 -0.0411
muscles.BFSH.path.2.at_m.2 -0.0301
muscles.BFSH.path.2.at_m.3 0.1507
muscles.BFSH.path.3.at_m.2 -0.0234
muscles.BFSH.path.3.at_m.3 0.1304
muscles.GLU.F_max_N 819.0
muscles.GLU.l_CE_opt_m 0.147
muscles.GLU.l_SEE_0_m 0.127
muscles.GLU.path.1.at_m.2 -0.0642
muscles.GLU.path.1.at_m.3 0.0837
muscles.GLU.path.2.at_m.2 -0.0669
muscles.GLU.path.2.at_m.3 0.0141
muscles.GLU.path.3.at_m.2 -0.0426
muscles.GLU.path.3.at_m.3 0.117
muscles.GLU.path.4.at_m.2 -0.0156
muscles.GLU.path.4.at_m.3 0.0684
muscles.ILI.F_max_N 1073.0
muscles.ILI.l_CE_opt_m 0.1
muscles.ILI.l_SEE_0_m 0.1
muscles.ILI.path.1.at_m.2 0.0033
muscles.ILI.path.1.at_m.3 0.1026
muscles.ILI.path.2.at_m.2 0.0449
muscles.ILI.path.2.at_m.3 0.0111
muscles.ILI.path.3.at_m.2 0.0419
muscles.ILI.path.3.at_m.3 -0.0144
muscles.ILI.path.4.at_m.2 0.0017
muscles.ILI.path.4.at_m.3 0.1157
muscles.ILI.path.5.at_m.2 -0.0193
muscles.ILI.path.5.at_m.3 0.1079
"""
